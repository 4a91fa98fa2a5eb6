"""Says of a failure that rests on stale reads where they are, and that stronger orders end it.

A load is stale when it does not read the newest store. The same program is explored under
sequential consistency, which has no stale reads, for a bounded number of executions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.lanes import Places
from pulsar_ml.harness.search.symbols import describe_pc, own_pc
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

SC_EXECUTIONS = 5_000  # of a search, and of a sample when the search does not end
SC_BOUND = 16  # preemptions of the search
MOST_READS = 3  # that are named
# Failures of memory itself: their cause is an order that is missing, and not an old value.
OF_MEMORY = ("data race", "uninitialised read")

Event = dict[str, Any]


def stale_remarks(
    failure: Failure, subject: Subject, *, judge: Judge | None = None
) -> tuple[str, ...]:
    """Return sentences on the stale reads of a shrunk failure; none when it has none."""
    if failure.mode == "sc" or failure.ended_process or failure.kind in OF_MEMORY:
        return ()
    again = failure.replay(subject, judge)
    reads = stale_reads(again.trace)
    if not reads or not again.exact:
        return ()
    try:
        done = under_sc(failure, subject, judge if failure.kind == WRONG_ANSWERS else None)
    except (LimitsError, NondeterminismError):
        return ()
    if (found := done.failure) is not None:
        other = "" if found.signature == failure.signature else f" ({found.kind}: {found.message})"
        return (
            "not for its stale reads alone: under sequential consistency execution "
            f"{done.executions:,} of {done.strategy} fails, too{other}",
        )
    count = counted(done.executions, "execution")
    if done.exhausted == "completely":
        head, tried = "legal under sequential consistency", f"none of all its {count} fails"
    else:
        head, tried = (
            "seen with stale reads alone",
            f"{count} under sequential consistency did not show it",
        )
    places = ", ".join(read_text(event, again.trace) for event in reads[:MOST_READS])
    more = f" and {len(reads) - MOST_READS} more" if len(reads) > MOST_READS else ""
    criterion = "criterion" if failure.kind == WRONG_ANSWERS else "assertion"
    return (
        f"{head}: {places}{more}; {tried}",
        f'where old values are right: mode="sc", or a weaker {criterion} that accepts them',
    )


def under_sc(failure: Failure, subject: Subject, judge: Judge | None) -> Exploration:
    """Explore the failure's program without stale reads: all of a short one, or a sample."""
    options = failure.engine_options() | {
        "mode": "sc",
        "executions": SC_EXECUTIONS,
        "seed": failure.seed,
        "judge": judge,
        "lock_free": failure.lock_free,
    }
    program = Program.from_json(failure.program)
    done = explore(subject, program, strategy="preemptions", bound=SC_BOUND, **options)
    if done.failure is not None or done.exhausted == "completely":
        return done
    return explore(subject, program, **options)


def stale_reads(trace: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the reads that another thread's newer store was hidden from.

    Under TSO these are loads while another thread holds back a store to the location.
    """
    found: list[Mapping[str, Any]] = []
    held: dict[int, list[int]] = {}  # by address: the threads of stores in buffers
    for event in trace:
        address, thread, op = int(event["address"]), int(event["thread"]), event["op"]
        if op == "buffer":
            held.setdefault(address, []).append(thread)
        elif op == "flush" and thread in held.get(address, []):
            held[address].remove(thread)
        elif op in ("load", "cas") and (
            event["stale"] or any(other != thread for other in held.get(address, []))
        ):
            found.append(event)
    return found


def read_text(event: Mapping[str, Any], trace: Sequence[Event]) -> str:
    """Describe a stale read: ``a stale read of ring.tail in Ring::pop(), ring.hpp:19``."""
    name = Names(trace).known(event)
    pc = own_pc(event["frames"])
    function, _, _ = describe_pc(pc).rpartition(" ")
    of = f" of {name}" if name else ""
    within = f" in {function}" if function != "operator()" else ""
    return f"a stale read{of}{within}, {Places(trace).of(event)}"
