"""Mistakes in structures/pending_reads.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/pending_reads.pxd"

COMPLETE = """
pending_unlink(reads, handle)
listeners = read.listeners
monitor_leave(&reads.monitor)
pool_give(&reads.reads, handle)
pending_deliver(reads, listeners, token, status, entries, count)
"""

SLOT = """
if entry_id < part.first or entry_id > part.last or slots[entry_id - part.request.first]:
    continue
"""

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H23",
        title="a completed read answers its requests under the monitor",
        origin="#23952, fixed by #23958",
        file=FILE,
        old=COMPLETE,
        new="""
pending_unlink(reads, handle)
listeners = read.listeners
pool_give(&reads.reads, handle)
pending_deliver(reads, listeners, token, status, entries, count)
monitor_leave(&reads.monitor)
""",
        suite="pending_reads",
        breaks="I84",
        # The listener waits for its own thread: real threads would hang.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="M60",
        title="a read can be joined after its listeners were taken",
        origin="port",
        file=FILE,
        old=COMPLETE,
        new="""
listeners = read.listeners
read.generation += 1
monitor_leave(&reads.monitor)
monitor_enter(&reads.monitor)
pending_unlink(reads, handle)
monitor_leave(&reads.monitor)
pool_give(&reads.reads, handle)
pending_deliver(reads, listeners, token, status, entries, count)
""",
        suite="pending_reads",
        breaks="I83, I82",
        # Rare on real threads, where lists may become rings.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="H33",
        title="only the newest read can time out",
        origin="#26081",
        file=FILE,
        old="""
if reads.oldest:
    read = pending_read_at(reads, reads.oldest)
    if <int64_t>(<uint64_t>reads.now - <uint64_t>read.since) >= reads.timeout:
        token = <uint64_t>read.generation << 32 | reads.oldest
""",
        new="""
if reads.newest:
    read = pending_read_at(reads, reads.newest)
    if <int64_t>(<uint64_t>reads.now - <uint64_t>read.since) >= reads.timeout:
        token = <uint64_t>read.generation << 32 | reads.newest
""",
        suite="pending_reads",
        breaks="I82",
    ),
    Mutant(
        id="H34",
        title="a completion does not check the generation of its read",
        origin="#4434, fixed by #4437",
        file=FILE,
        old="""
if read.generation != token >> 32:
    monitor_leave(&reads.monitor)
    pending_discard(reads.entries, entries, count)
    return False
""",
        new="pass",
        suite="pending_reads",
        breaks="PR-8, I82",
        # Its lists become rings: real threads would hang.
        mode="sc",
        within=4_000,
    ),
    Mutant(
        id="H36a",
        title="the slot of an entry is computed in 32 bits",
        origin="port; newest EntryCacheTest",
        file=FILE,
        old=SLOT,
        new="""
entry_id = part.first + <int32_t>(entry_id - part.first)
if entry_id < part.first or entry_id > part.last or slots[entry_id - part.request.first]:
    continue
""",
        suite="pending_reads",
        breaks="I85, I49",
    ),
    Mutant(
        id="H36b",
        title="entries of another ledger are accepted",
        origin="port; newest EntryCacheTest",
        file=FILE,
        old="""
if not entries[i] or entry_at(reads.entries, entries[i]).ledger_id != part.request.ledger_id:
    continue
""",
        new="""
if not entries[i]:
    continue
""",
        suite="pending_reads",
        breaks="I85",
    ),
    Mutant(
        id="H36c",
        title="entries that were not requested are not released",
        origin="port; newest EntryCacheTest",
        file=FILE,
        old=SLOT,
        new="""
if entry_id < part.first or entry_id > part.last or slots[entry_id - part.request.first]:
    if not shared:
        entries[i] = 0
    continue
""",
        suite="pending_reads",
        breaks="I86",
    ),
    Mutant(
        id="H36d",
        title="an entry that was not delivered counts as read",
        origin="port; newest EntryCacheTest",
        file=FILE,
        old="entry_not_delivered(pool, entries[i])",
        new="pass",
        suite="pending_reads",
        breaks="I68",
    ),
    Mutant(
        id="H36e",
        title="a second entry of a position replaces the first",
        origin="port; newest EntryCacheTest",
        file=FILE,
        old=SLOT,
        new="""
if entry_id < part.first or entry_id > part.last:
    continue
""",
        suite="pending_reads",
        breaks="I86",
    ),
    Mutant(
        id="RD2",
        title="several requests share one request's entries instead of copies",
        origin="port",
        file=FILE,
        old="""
if shared:
    entry = entry_copy(reads.entries, entry, True)
    if not entry:
        return PENDING_OUT_OF_MEMORY
else:
    entries[i] = 0
""",
        new="""
if not shared:
    entries[i] = 0
""",
        suite="pending_reads",
        breaks="I85",
    ),
)
