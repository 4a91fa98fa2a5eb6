"""Mistakes in structures/entry.pxd."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize
from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/entry.pxd"

FIELDS = """
entry.ledger_id = at.ledger_id
entry.entry_id = at.entry_id
i64_store_relaxed(&entry.payload, share)
u32_store_relaxed(&entry.extra, read_count | (EXTRA_COUNTS_READ if counts_read else 0))
"""

SHARED = {**dict.fromkeys(("policy", "keep", "length_shift"), (0, 0)), "caches": (1, 1)}

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="EX-adopted",
        title="an adopted read count is published by a relaxed exchange",
        origin="port",
        file=FILE,
        old="""
while not u32_cas_strong_acq_rel(cell, &seen, (seen & ~<uint32_t>EXTRA_HANDLE) | adopted):
    pass
""",
        new="""
while not u32_cas_weak_relaxed(cell, &seen, (seen & ~<uint32_t>EXTRA_HANDLE) | adopted):
    pass
""",
        suite="range_cache",
        breaks="I70",
        mode="c11",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_weak_relaxed",
        calls=(
            (("put", 0, 1, 0), ("put", 0, 1, 2)),
            (("hold", 0, 1, 0), ("expect", 0), ("expect", 0)),
        ),
        settings=SHARED,
    ),
    Mutant(
        id="EX-followed",
        title="the read count of an entry is reached by a relaxed load",
        origin="port",
        file=FILE,
        old="return u32_load_acquire(entry_reads_cell(pool, entry)) & EXTRA_HANDLE",
        new="return u32_load_relaxed(entry_reads_cell(pool, entry)) & EXTRA_HANDLE",
        suite="removal_queue",
        breaks="I70",
        mode="c11",
        calls=((("put", 0, 1, 0), ("dispatch", 0, 1, -1)), (("free", 200, 0),)),
        settings=SHARED | {"max_requeue": (2, 2)},
    ),
    Mutant(
        id="EX-known",
        title="a read count is published by a relaxed exchange",
        origin="port",
        file=FILE,
        old="if u32_cas_strong_acq_rel(cell, &seen, seen | fresh):\n    return fresh\n",
        new="""
if u32_cas_weak_relaxed(cell, &seen, seen | fresh):
    return fresh
""",
        suite="range_cache",
        breaks="I70",
        mode="c11",
        cimports="from pulsar_ml.sync.atomics cimport u32_cas_weak_relaxed",
        calls=((("put", 0, 1, 0), ("dispatch", 0, 1, -1)), (("dispatch", 0, 1, -1),)),
        settings=SHARED,
    ),
    Mutant(
        id="M56",
        title="a copy that counts no read marks one",
        origin="port",
        file=FILE,
        old="""
if read_count and extra & EXTRA_COUNTS_READ:
    read_count_mark_read(&pool.read_counts, read_count, pool.counts_of_4)
""",
        new="""
if read_count:
    read_count_mark_read(&pool.read_counts, read_count, pool.counts_of_4)
""",
        suite="entry",
        breaks="I69",
    ),
    Mutant(
        id="EX-made",
        title="a read count is created by a load and a store",
        origin="port",
        file=FILE,
        old="if u32_cas_strong_acq_rel(cell, &seen, seen | fresh):\n    return fresh\n",
        new="""
u32_store_release(cell, seen | fresh)
return fresh
""",
        suite="expected_reads",
        breaks="I70",
        rare=True,
        cimports="from pulsar_ml.sync.atomics cimport u32_store_release",
    ),
    Mutant(
        id="H15",
        title="reading moves an index that all readers share",
        origin="issue #24831, PR #24836",
        file="structures/payload.pxd",
        old="return (<PayloadSlice*>payload).bytes",
        new="""
if payload_length(payload) > 8:
    (<PayloadSlice*>payload).bytes += 1
return (<PayloadSlice*>payload).bytes
""",
        suite="receive_buffer",
        breaks="I2",
    ),
    Mutant(
        id="H16",
        title="the cache's copy points into the original buffer",
        origin="issue #26493, PR #26495",
        file="structures/payload.pxd",
        old="memcpy(payload_bytes(copy), payload_bytes(payload), payload_length(payload))",
        new="return point_into_source(payload, copy)",
        helper="""
cdef inline Payload* point_into_source(Payload* payload, Payload* copy) noexcept nogil:
    cdef PayloadSlice* slice = <PayloadSlice*>allocate(sizeof(PayloadSlice))
    release(copy)
    if slice is NULL:
        return NULL
    slice.source = NULL
    slice.bytes = payload_bytes(payload)
    slice.payload.length_and_mark = payload_length(payload) | PAYLOAD_IS_SLICE
    refcount_publish(&slice.payload.references)
    return &slice.payload
""",
        suite="receive_buffer",
        breaks="I2, I18",
    ),
    Mutant(
        id="B04",
        title="a slice holds no reference of its buffer",
        origin="port",
        file="structures/payload.pxd",
        old="receive_buffer_retain(source)",
        new="pass",
        suite="receive_buffer",
        breaks="I2, RB-1",
        within=4_000,
    ),
    Mutant(
        id="B05",
        title="a slice without bytes does not give its buffer back",
        origin="port",
        file="structures/payload.pxd",
        old="""
receive_buffer_release(source)
release(payload)
""",
        new="""
if payload_length(payload):
    receive_buffer_release(source)
release(payload)
""",
        suite="receive_buffer",
        breaks="I17",
    ),
    Mutant(
        id="M14",
        title="an entry's count is published before its fields",
        origin="port",
        file=FILE,
        old=FIELDS
        + """
# Last: from here a stale handle can retain this incarnation.
refcount_publish(&entry.references)
""".lstrip("\n"),
        new="refcount_publish(&entry.references)" + FIELDS,
        suite="entry",
        breaks="I12, I34, I1",
        mode="sc",
        within=10_000,
        programs=ControlledSize(
            (2, 3), (4, 7), {"new": 3, "pass_on": 3, "retain_stale": 5, "release": 4, "read": 2}
        ),
        settings={"limit": (2, 4), "chunk_bits": (0, 0)},
    ),
    Mutant(
        id="EN-callback",
        title="an entry that counts a read is said to have no callback",
        origin="port",
        file=FILE,
        old="return (u32_load_relaxed(&entry_at(pool, handle).extra) & EXTRA_IS_CALLBACK) != 0",
        new="""
return (u32_load_relaxed(&entry_at(pool, handle).extra)
        & (EXTRA_IS_CALLBACK | EXTRA_COUNTS_READ)) == EXTRA_IS_CALLBACK
""",
        suite="entry",
        breaks="I20",
    ),
)
