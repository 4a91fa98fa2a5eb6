"""Mistakes in structures/payload_memory.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/payload_memory.pxd"
ENTER = "return u32_load_relaxed(&memory.busy) == 0 and u32_exchange_acquire(&memory.busy, 1) == 0"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="BM-inside",
        title="two threads that look at the word at once are both let in",
        origin="port",
        file=FILE,
        old=ENTER,
        new="""
if u32_load_relaxed(&memory.busy) != 0:
    return False
u32_store_relaxed(&memory.busy, 1)
fence_acquire()
return True
""",
        suite="payload_memory",
        breaks="BM-1",
        cimports="from pulsar_ml.sync.atomics cimport fence_acquire, u32_store_relaxed",
        within=4_000,
    ),
    Mutant(
        id="BM-enter",
        title="a thread is let in by an exchange that does not acquire",
        origin="port",
        file=FILE,
        old=ENTER,
        new="return u32_load_relaxed(&memory.busy) == 0 and u32_exchange_release(&memory.busy, 1) == 0",
        suite="payload_memory",
        breaks="BM-2",
        cimports="from pulsar_ml.sync.atomics cimport u32_exchange_release",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="BM-leave",
        title="a thread leaves by a relaxed store",
        origin="port",
        file=FILE,
        old="u32_store_release(&memory.busy, 0)",
        new="u32_store_relaxed(&memory.busy, 0)",
        suite="payload_memory",
        breaks="BM-2",
        cimports="from pulsar_ml.sync.atomics cimport u32_store_relaxed",
        mode="c11",
        within=4_000,
    ),
    Mutant(
        id="BM-most",
        title="what is too much is kept",
        origin="port",
        file=FILE,
        old="dropped = payload_memory_drop(memory)",
        new="dropped = NULL",
        suite="payload_memory",
        breaks="BM-3",
    ),
    Mutant(
        id="BM-room",
        title="a block has the room of the next smaller size",
        origin="port",
        file=FILE,
        old="return allocate((<size_t>size << BLOCK_STEP_BITS) - BLOCK_OVERHEAD)",
        new="return allocate(((<size_t>size - 1) << BLOCK_STEP_BITS) - BLOCK_OVERHEAD)",
        suite="payload_memory",
        breaks="BM-1",
        mode="c11",
    ),
    Mutant(
        id="BM-largest",
        title="a block one step above the largest size is kept",
        origin="port",
        file=FILE,
        old="return memory.first is not NULL and size < BLOCK_SIZES",
        new="return memory.first is not NULL and size <= BLOCK_SIZES",
        suite="payload_memory",
        breaks="BM-1",
    ),
    Mutant(
        id="BM-sizes",
        title="blocks of two sizes join one chain",
        origin="port",
        file=FILE,
        old="""
if chain.size != size:
    payload_memory_give_all(memory, chain)
    chain.size = size
""",
        new="""
if chain.size == 0:
    chain.size = size
""",
        suite="payload_memory",
        breaks="BM-1",
    ),
    Mutant(
        id="BM-count",
        title="of a chain that is given back one block is counted",
        origin="port",
        file=FILE,
        old="memory.bytes += <int64_t>chain.blocks * chain.size << BLOCK_STEP_BITS",
        new="memory.bytes += <int64_t>chain.size << BLOCK_STEP_BITS",
        suite="payload_memory",
        breaks="BM-1",
    ),
    Mutant(
        id="BM-taken",
        title="a block that is taken stays in its list",
        origin="port",
        file=FILE,
        function="payload_memory_take",
        old="memory.first[size] = block.next",
        new="memory.first[size] = block",
        suite="payload_memory",
        breaks="BM-1",
    ),
    Mutant(
        id="BM-lost",
        title="what another thread keeps out is lost",
        origin="port",
        file=FILE,
        old="""
if dropped is NULL:
    return
""",
        new="""
if dropped is NULL:
    return
if u32_load_relaxed(&memory.busy) != 0:
    chain.first = NULL
    chain.last = NULL
    chain.blocks = 0
    return
""",
        suite="payload_memory",
        breaks="BM-1",
        mode="c11",
    ),
)
