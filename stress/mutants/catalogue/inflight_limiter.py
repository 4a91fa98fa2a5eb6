"""Mistakes in structures/inflight_limiter.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/inflight_limiter.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H23b",
        title="waiting requests are answered under the monitor",
        origin="#23952, fixed by #23958",
        file=FILE,
        old="""
limiter.remaining += permits
ready = limiter_settle(limiter)
monitor_leave(&limiter.monitor)
return ready
""",
        new="""
limiter.remaining += permits
limiter_tell(limiter, limiter_settle(limiter))
monitor_leave(&limiter.monitor)
return 0
""",
        suite="inflight_limiter",
        breaks="I84",
        # The callback waits for its own thread: real threads would hang.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="RD3",
        title="a request that waited takes its permits twice",
        origin="port; the count of #23869",
        file=FILE,
        old="limiter.remaining -= waiter.permits",
        new="limiter.remaining -= 2 * waiter.permits",
        suite="inflight_limiter",
        breaks="I87, I88",
    ),
    Mutant(
        id="H27",
        title="permits that a callback refuses are lost",
        origin="#26296",
        file=FILE,
        old="""
if not callback(context, argument, permits, granted):
    refused += permits
""",
        new="callback(context, argument, permits, granted)",
        suite="inflight_limiter",
        breaks="I88",
    ),
    Mutant(
        id="M58",
        title="a release checks the first request only once",
        origin="port",
        file=FILE,
        old="limiter.waiting -= 1",
        new="""
limiter.waiting -= 1
break
""",
        suite="inflight_limiter",
        breaks="I90",
    ),
    Mutant(
        id="M59",
        title="a failed request gives back the permits that it requested",
        origin="port",
        file=FILE,
        old="taken[0] = 0",
        new="taken[0] = permits",
        suite="inflight_limiter",
        breaks="I87",
    ),
    Mutant(
        id="RD4",
        title="a request is granted and its permits taken in two sections",
        origin="port",
        file=FILE,
        old="limiter.remaining -= permits",
        new="""
monitor_leave(&limiter.monitor)
monitor_enter(&limiter.monitor)
limiter.remaining -= permits
""",
        suite="inflight_limiter",
        breaks="I87",
        # A schedule that is rare on real threads.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="RD7",
        title="a request above the maximum waits although nothing is in flight",
        origin="the rule before 4.0.7",
        file=FILE,
        old="""
if permits > limiter.maximum:
    permits = limiter.maximum
""",
        new="pass",
        suite="inflight_limiter",
        breaks="IL-6",
    ),
    Mutant(
        id="RD8",
        title="a request above the maximum gets what remains while others are in flight",
        origin="port",
        file=FILE,
        old="""
if permits > limiter.maximum:
    permits = limiter.maximum
""",
        new="""
if permits > limiter.maximum:
    permits = limiter.remaining
""",
        suite="inflight_limiter",
        breaks="I88",
    ),
    Mutant(
        id="RD9",
        title="a timeout of 0 fails what waits at once",
        origin="port",
        file=FILE,
        old="""
if limiter.timeout <= 0:
    return False
""",
        new="pass",
        suite="inflight_limiter",
        breaks="IL-7",
    ),
    Mutant(
        id="IL-try",
        title="a try takes permits although requests wait",
        origin="port",
        file=FILE,
        old="fits = not limiter.closed and not limiter.first and permits <= limiter.remaining",
        new="fits = not limiter.closed and permits <= limiter.remaining",
        suite="inflight_limiter",
        breaks="linearizability",
        rare=True,
    ),
    Mutant(
        id="IL-next",
        title="the next expiry is that of the request that came last",
        origin="port",
        file=FILE,
        old="""
at[0] = <int64_t>(<uint64_t>limiter_waiter(limiter, limiter.first).since
                  + <uint64_t>limiter.timeout)
""",
        new="""
at[0] = <int64_t>(<uint64_t>limiter_waiter(limiter, limiter.last).since
                  + <uint64_t>limiter.timeout)
""",
        suite="inflight_limiter",
        breaks="linearizability",
        rare=True,
    ),
)
