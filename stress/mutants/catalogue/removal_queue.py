"""Mistakes in structures/removal_queue.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/removal_queue.pxd"

JUDGE = """
if run.by_time:
    # The difference, not the values, is compared: clocks may be negative or wrap.
    age = <uint64_t>run.threshold - <uint64_t>i64_load_relaxed(&wrapper.timestamp)
    if <int64_t>age <= 0:
        return STOP
elif run.removed.bytes >= run.target:
    return STOP
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M20",
        title="a wrapper found empty is polled and never recycled",
        origin="port",
        file=FILE,
        old="""
run.missing += verdict == MISSING
wrapper_recycle(&queue.memory.wrappers, handle)
""",
        new="""
run.missing += verdict == MISSING
if verdict != MISSING:
    wrapper_recycle(&queue.memory.wrappers, handle)
""",
        suite="removal_queue",
        breaks="I23",
    ),
    Mutant(
        id="M21",
        title="a wrapper found empty counts as a removal",
        origin="port",
        file=FILE,
        old="""
verdict = MISSING
""",
        new="""
verdict = MISSING
run.removed.entries += 1
""",
        suite="removal_queue",
        breaks="I60, I47",
    ),
    Mutant(
        id="M22",
        title="a size pass removes one more at an exact fit",
        origin="port",
        file=FILE,
        old=JUDGE,
        new=JUDGE.replace("run.removed.bytes >= run.target", "run.removed.bytes > run.target"),
        suite="removal_queue",
        breaks="I53",
    ),
    Mutant(
        id="M24",
        title="requeued bytes count as freed",
        origin="port",
        file=FILE,
        old="wrapper_mark_requeued(wrapper, run.now)",
        new="""
wrapper_mark_requeued(wrapper, run.now)
run.removed.bytes += wrapper.size
""",
        suite="removal_queue",
        breaks="I54, I46",
    ),
    Mutant(
        id="M26",
        title="a time pass removes what is exactly at the threshold",
        origin="port",
        file=FILE,
        old=JUDGE,
        new=JUDGE.replace("<int64_t>age <= 0", "<int64_t>age < 0"),
        suite="removal_queue",
        breaks="I51",
    ),
    Mutant(
        id="M32",
        title="one requeue too many",
        origin="port",
        file=FILE,
        old="""
return (wrapper.requeue_count < queue.max_requeue_count
        and entry_has_expected_reads(&queue.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        new="""
return (wrapper.requeue_count <= queue.max_requeue_count
        and entry_has_expected_reads(&queue.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        suite="removal_queue",
        breaks="I56",
    ),
    Mutant(
        id="M35",
        title="the size is taken off twice",
        origin="port",
        file=FILE,
        old="i64_fetch_sub_relaxed(&cache.size, removed.bytes - before)",
        new="i64_fetch_sub_relaxed(&cache.size, 2 * (removed.bytes - before))",
        suite="removal_queue",
        breaks="I40, I45",
    ),
)
