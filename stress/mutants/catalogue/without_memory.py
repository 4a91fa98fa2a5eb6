"""Mistakes that show only where an allocation fails; the build of all mutants has them, too."""

from __future__ import annotations

from stress.mutants.catalogue import answers, concurrent_answers
from stress.mutants.catalogue.mutant import Mutant

# Mutants of one place have the same old text, and share a switch.
OLD = {one.id: one.old for one in (*answers.MUTANTS, *concurrent_answers.MUTANTS)}

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="N01",
        title="a handle of a chunk that could not be allocated is lost",
        origin="port",
        file="structures/object_pool.pxd",
        old=OLD["A01"],
        new=OLD["A01"].replace(
            "        return 0\n",
            "        u32_cas_strong_acq_rel(&pool.used, &handle, handle + 1)\n        return 0\n",
        ),
        suite="object_pool",
        breaks="",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_strong_acq_rel",
    ),
    Mutant(
        id="N02",
        title="an offer without memory keeps its slot",
        origin="port",
        file="structures/mpsc_queue.pxd",
        old="""
if next_chunk is NULL:
    return PML_NO_MEMORY
""",
        new="""
if next_chunk is NULL:
    u64_store_release(&queue.tail, tail + 1)
    return PML_NO_MEMORY
""",
        suite="mpsc_queue",
        breaks="",
    ),
    Mutant(
        id="N03",
        title="a copy that got no handle keeps its reference to the read count",
        origin="port",
        file="structures/entry.pxd",
        old="""
if read_count:
    read_count_release(&pool.read_counts, read_count)
return 0
""",
        function="entry_copy_chained",
        new="return 0",
        suite="entry",
        breaks="",
    ),
    Mutant(
        id="N04",
        title="a put that is not queued stays in the map",
        origin="port",
        file="structures/range_cache.pxd",
        old="map_remove(&cache.map, key, handle)",
        function="range_cache_link",
        new="pass",
        suite="range_cache",
        breaks="",
    ),
    Mutant(
        id="N05",
        title="a range without memory is answered as new",
        origin="port",
        file="structures/ack_ranges.pxd",
        old="""
if not blocks_insert(&acks.ranges, spot, &fresh):
    return ACK_NO_MEMORY
""",
        new="""
if not blocks_insert(&acks.ranges, spot, &fresh):
    return ACK_NEW
""",
        suite="ack_state",
        breaks="",
    ),
    Mutant(
        id="N06",
        title="a bucket that was made for a message without memory stays",
        origin="port",
        file="structures/delayed_tracker.pxd",
        old="tracker_take_out(tracker, handle, position(-1, -1))",
        function="delayed_tracker_add",
        new="pass",
        suite="delayed_tracker",
        breaks="",
    ),
    Mutant(
        id="N07",
        title="a request without memory stays with the reads that it joined",
        origin="port",
        file="structures/pending_reads.pxd",
        old=OLD["A23"],
        new=OLD["A23"].replace("else:\n    pending_detach(reads, request)\n", ""),
        suite="pending_reads",
        breaks="",
    ),
    Mutant(
        id="N08",
        title="a cursor that got no place is lost",
        origin="port",
        file="structures/cursor_heap.pxd",
        old="registry_give(&heap.registry, &cursor.node)",
        function="cursor_heap_add",
        new="pass",
        suite="cursor_heap",
        breaks="",
    ),
    Mutant(
        id="N09",
        title="a scan without memory for its plan frees nothing",
        origin="port",
        file="structures/ledger_scan.pxd",
        old="run.unplanned = not scan_make_plan(base.memory, plan, run.target - run.removed.bytes)",
        new="""
if not scan_make_plan(base.memory, plan, run.target - run.removed.bytes):
    return False
""",
        suite="cache_manager",
        breaks="",
        settings={"policy": (3, 3)},
    ),
    Mutant(
        id="N10",
        title="what has no place in a queue is not removed",
        origin="port",
        file="structures/s3_fifo.pxd",
        old="""
if not handle:
    return STOP
""",
        function="s3_handle_waiting",
        new="return STOP",
        suite="eviction_policy",
        breaks="",
    ),
)
