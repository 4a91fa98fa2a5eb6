"""Mistakes in structures/removal_queue.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/removal_queue.pxd"

JUDGE = """
if run.by_time:
    if not pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold):
        return STOP
elif run.removed.bytes >= run.target:
    return STOP
"""

AFTER = """
if verdict == STOP:
    return False
mpsc_poll(&base.intake.queue)
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="M18",
        title="a kept wrapper is put at the tail before the head is polled",
        origin="port",
        file=FILE,
        old=AFTER,
        new="""
if verdict == STOP:
    return False
if verdict == REQUEUE:
    removal_requeue(base, handle, wrapper, run)
    mpsc_poll(&base.intake.queue)
    return True
mpsc_poll(&base.intake.queue)
""",
        suite="removal_queue",
        breaks="I22",
        equivalent="The poll takes the head, whatever stands at the tail; who looks at the queue in between "
        "would need the monitor.",
    ),
    Mutant(
        id="M20",
        title="a wrapper found empty is polled and never recycled",
        origin="port",
        file=FILE,
        old="""
run.missing += verdict == MISSING
pool_chain(&run.dropped, handle, &wrapper.timestamp)
""",
        new="""
run.missing += verdict == MISSING
if verdict != MISSING:
    pool_chain(&run.dropped, handle, &wrapper.timestamp)
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
        title="a size pass removes one entry too many at an exact fit",
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
        old="run.requeued += 1",
        new="""
run.requeued += 1
run.removed.bytes += wrapper.size
""",
        suite="removal_queue",
        breaks="I54, I46",
    ),
    Mutant(
        id="M26",
        title="a time pass removes entries exactly at the threshold",
        origin="port",
        file=FILE,
        old=JUDGE,
        new=JUDGE.replace("run.threshold)", "run.threshold + 1)"),
        suite="removal_queue",
        breaks="I51",
    ),
    Mutant(
        id="M32",
        title="one requeue too many",
        origin="port",
        file=FILE,
        old="""
return (wrapper_requeues(wrapper, &base.memory.map) < base.settings.max_requeue_count
        and entry_has_expected_reads(&base.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        new="""
return (wrapper_requeues(wrapper, &base.memory.map) <= base.settings.max_requeue_count
        and entry_has_expected_reads(&base.memory.entries, u32_load_relaxed(&wrapper.value)))
""",
        suite="removal_queue",
        breaks="I56",
    ),
    Mutant(
        id="M15",
        title="the head is polled before it is judged, and put back at the tail if the pass stops",
        origin="port",
        file=FILE,
        old=AFTER,
        new="""
mpsc_poll(&base.intake.queue)
if verdict == STOP:
    mpsc_offer(&base.intake.queue, handle)
    return False
""",
        suite="removal_queue",
        breaks="I52, I58",
    ),
    Mutant(
        id="M23",
        title="a size pass checks the size after it removed the next entry",
        origin="port",
        file=FILE,
        old=JUDGE,
        new=JUDGE.replace("run.removed.bytes >=", "run.removed.bytes - run.last.size >="),
        suite="removal_queue",
        breaks="I53",
    ),
    Mutant(
        id="M25",
        title="a size pass ends at the first entry that is kept",
        origin="port",
        file=FILE,
        old=AFTER,
        new="""
if verdict == STOP or (verdict == REQUEUE and not run.by_time):
    return False
mpsc_poll(&base.intake.queue)
""",
        suite="removal_queue",
        breaks="I54",
    ),
    Mutant(
        id="M27",
        title="a time pass continues after a young entry",
        origin="port",
        file=FILE,
        old=AFTER,
        new="""
if verdict == STOP:
    if not run.by_time or not removal_first_round(base, run):
        return False
    mpsc_poll(&base.intake.queue)
    return mpsc_offer(&base.intake.queue, handle) == PML_OK
mpsc_poll(&base.intake.queue)
""",
        suite="removal_queue",
        breaks="I51, I52",
    ),
    Mutant(
        id="M30",
        title="the accessed mark is cleared again when the wrapper is back in the queue",
        origin="port",
        file=FILE,
        old="run.requeued += 1",
        new="""
run.requeued += 1
entry_forget_access(&base.memory.entries, u32_load_relaxed(&wrapper.value))
""",
        suite="removal_queue",
        breaks="I55",
        cimports="from pulsar_ml.structures.entry cimport entry_forget_access",
        mode="sc",
        calls=((("put", 0, 0, 0), ("get", 0, 0, 0), ("expire", 0, 0, 0)), (("get", 0, 0, 0),) * 2),
        settings={
            name: (value, value)
            for name, value in {
                "caches": 1,
                "keys": 4,
                "chunk_bits": 2,
                "queue_chunk_bits": 2,
                "max_requeue": 0,
                "extend": 1,
                "length_shift": 0,
                "keep": 0,
                "policy": 0,
            }.items()
        },
        strategy="pos",
    ),
    Mutant(
        id="L07",
        title="an access uses up the extension of expected reads",
        origin="Pulsar 4.1, mended by the central queue",
        file=FILE,
        old="pass_mark_requeued(base, wrapper, run.now, base.one_budget)",
        new="pass_mark_requeued(base, wrapper, run.now, 1)",
        suite="removal_queue",
        breaks="I59",
    ),
    Mutant(
        id="L08",
        title="a pass keeps entries that it meets a second time",
        origin="Pulsar 4.1, mended by the central queue",
        file=FILE,
        old="""
if not removal_first_round(base, run) and not removal_keeps_again(base, run):
    return REMOVE
""",
        new="pass",
        suite="removal_queue",
        breaks="I57",
    ),
    Mutant(
        id="L08b",
        title="a size pass of released_5 keeps entries that it meets a second time",
        origin="Pulsar 4.2.4",
        file=FILE,
        old="return base.most_keeps < 0 or (base.one_budget and run.by_time)",
        new="return base.most_keeps < 0 or base.one_budget",
        suite="removal_queue",
        breaks="I57",
    ),
    Mutant(
        id="M19",
        title="a pass stops at an empty wrapper and leaves it at the head",
        origin="port",
        file=FILE,
        old=AFTER,
        new="""
if verdict == STOP or verdict == MISSING:
    return False
mpsc_poll(&base.intake.queue)
""",
        suite="removal_queue",
        breaks="I60, I23",
    ),
)
