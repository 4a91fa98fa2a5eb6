"""Mistakes of code that got no memory: each shows only where an allocation fails."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant


def mistake(
    name: str,
    title: str,
    file: str,
    old: str,
    new: str,
    *,
    suite: str = "",
    function: str = "",
    cimports: str = "",
) -> Mutant:
    return Mutant(
        id=name,
        title=title,
        origin="port",
        file=f"structures/{file}.pxd",
        old=old,
        new=new,
        suite=suite or file,
        breaks="",
        function=function,
        cimports=cimports,
    )


MUTANTS = (
    mistake(
        "N01",
        "a handle of a chunk that could not be allocated is lost",
        "object_pool",
        "if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):\n    return 0",
        "if not pool_ensure_chunk(pool, handle >> pool.chunk_bits):\n"
        "    u32_cas_strong_acq_rel(&pool.used, &handle, handle + 1)\n"
        "    return 0",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_strong_acq_rel",
    ),
    mistake(
        "N02",
        "an offer without memory keeps its slot",
        "mpsc_queue",
        "if next_chunk is NULL:\n    return PML_NO_MEMORY",
        "if next_chunk is NULL:\n"
        "    u64_store_release(&queue.tail, tail + 1)\n"
        "    return PML_NO_MEMORY",
    ),
    mistake(
        "N03",
        "a copy that got no handle keeps its payload",
        "entry",
        "payload_release(entry_payload(entry))\nread_count_release(&pool.read_counts, read_count)",
        "read_count_release(&pool.read_counts, read_count)",
        function="entry_copy",
    ),
    mistake(
        "N04",
        "a put that is not queued stays in the map",
        "range_cache",
        "map_remove(&cache.map, key, handle)",
        "pass",
        function="range_cache_link",
    ),
    mistake(
        "N05",
        "a range without memory is answered as new",
        "ack_ranges",
        "if not blocks_insert(&acks.ranges, spot, &fresh):\n    return ACK_NO_MEMORY",
        "if not blocks_insert(&acks.ranges, spot, &fresh):\n    return ACK_NEW",
        suite="ack_state",
    ),
    mistake(
        "N06",
        "a bucket that was made for a message without memory stays",
        "delayed_tracker",
        "tracker_take_out(tracker, handle, position(-1, -1))",
        "pass",
        function="delayed_tracker_add",
    ),
    mistake(
        "N07",
        "a request without memory stays with the reads that it joined",
        "pending_reads",
        "pending_detach(reads, request)",
        "pass",
        function="pending_reads_read",
    ),
    mistake(
        "N08",
        "a cursor that got no place is lost",
        "cursor_heap",
        "registry_give(&heap.registry, &cursor.node)",
        "pass",
        function="cursor_heap_add",
    ),
    mistake(
        "N09",
        "a scan without memory for its plan frees nothing",
        "ledger_scan",
        "run.unplanned = not scan_make_plan(base.memory, plan, run.target - run.removed.bytes)",
        "if not scan_make_plan(base.memory, plan, run.target - run.removed.bytes):\n"
        "    return False",
        suite="cache_manager",
    ),
    mistake(
        "N10",
        "what has no place in a queue is not removed",
        "s3_fifo",
        "if not handle:\n    return STOP",
        "return STOP",
        function="s3_handle_waiting",
        suite="eviction_policy",
    ),
)
