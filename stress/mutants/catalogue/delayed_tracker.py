"""Mistakes in structures/delayed_tracker.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/delayed_tracker.pxd"

# Of the programs that were written for a mutant.
SETTINGS = {
    "tick": (10, 10),
    "strict": (0, 0),
    "lookahead": (0, 0),
    "start": (0, 0),
    "spread": (5, 5),
}
ARMING = """
timer.armed = False
timer.target = TIMER_OFF
if not tracker.count or delay_due(tracker.rule, tracker.tick, first) <= now:
    return
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H30",
        title="the timer is cancelled and keeps its target",
        origin="#25996, fixed by #26012",
        file=FILE,
        old=ARMING,
        new="""
timer.armed = False
if not tracker.count or delay_due(tracker.rule, tracker.tick, first) <= now:
    return
""",
        suite="delayed_tracker",
        breaks="I96, I95",
    ),
    Mutant(
        id="H31A",
        title="every add counts, even of a message that is there",
        origin="#25617",
        file=FILE,
        old="tracker.count += added == SET_ADDED",
        new="tracker.count += 1",
        suite="delayed_tracker",
        breaks="I91, I92",
    ),
    Mutant(
        id="H31B",
        title="the count is read without the monitor",
        origin="#25076, #25681",
        file=FILE,
        old="""
monitor_enter(&tracker.monitor)
count = tracker.count
monitor_leave(&tracker.monitor)
""",
        new="count = tracker.count",
        suite="delayed_tracker",
        breaks="I91",
        # A data race that no value betrays on this machine.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="H32",
        title="the timer's handle outlives its fire",
        origin="a field shadowed by a parameter, 2021",
        file=FILE,
        old="""
timer.ran = True
timer.armed = False
timer.target = TIMER_OFF
""",
        new="""
timer.ran = True
timer.target = TIMER_OFF
""",
        suite="delayed_tracker",
        breaks="I96",
    ),
    Mutant(
        id="M66",
        title="existing buckets follow a changed tick",
        origin="port",
        file=FILE,
        old="""
monitor_enter(&tracker.monitor)
tracker.tick = tick
""",
        new="""
monitor_enter(&tracker.monitor)
tracker.rule = delay_rule(tick, tracker.rule.strict)
tracker.tick = tick
""",
        suite="delayed_tracker",
        breaks="I93, I91",
    ),
    Mutant(
        id="DT-clear",
        title="a clear keeps the highest time, and that delays differed",
        origin="4.2.4, mended in 5.0.1",
        file=FILE,
        old="""
tracker.highest = 0
tracker.all_fixed = True
monitor_leave(&tracker.monitor)
""",
        new="monitor_leave(&tracker.monitor)",
        suite="delayed_tracker",
        breaks="linearizability",
        rare=True,
        calls=(
            (("add", 1, 60), ("add", 2, 30), ("clear",), ("add", 3, 50), ("should_pause",)),
            (("count",),),
        ),
        settings=SETTINGS | {"lookahead": (1, 1)},
    ),
    Mutant(
        id="DT-due",
        title="a timer is armed for a bucket that is due at this moment",
        origin="found here by the comparison with 4.2.4 and 5.0.1",
        file=FILE,
        old=ARMING,
        new=ARMING.replace("<= now", "< now"),
        suite="delayed_tracker",
        breaks="linearizability",
        rare=True,
        calls=(
            (("add", 6, 8), ("pass_time", 8), ("fire",), ("add", 1, 20), ("timer",)),
            (("count",),),
        ),
        settings=SETTINGS | {"tick": (3, 3), "strict": (1, 1)},
    ),
    Mutant(
        id="DT-bytes",
        title="the bytes are read without the monitor",
        origin="port",
        file=FILE,
        old="""
monitor_enter(&tracker.monitor)
bytes = tracker.bytes + tracker.index.count * <int64_t>sizeof(DelayBucket)
monitor_leave(&tracker.monitor)
""",
        new="bytes = tracker.bytes + tracker.index.count * <int64_t>sizeof(DelayBucket)",
        suite="delayed_tracker",
        breaks="ES-3",
        # A data race that no value betrays on this machine.
        mode="sc",
    ),
)
