"""Mistakes in structures/pending_table.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/pending_table.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H29",
        title="the rest of an overlapping request is read without a search for reads to join",
        origin="#24346: its duplicate storage read",
        file=FILE,
        old="first = end + 1",
        new="""
first = end + 1
counts.read += last - first + 1
return pending_attach(reads, request, 0, first, last)
""",
        suite="pending_reads",
        breaks="PR-7",
    ),
    Mutant(
        id="RD1",
        title="a request joins the read of another ledger",
        origin="port",
        file=FILE,
        old="""
if read.ledger_id != ledger_id or read.first > last:
    return 0
""",
        new="""
if read.first > last:
    return 0
""",
        suite="pending_reads",
        breaks="I85",
    ),
    Mutant(
        id="RD5",
        title="a search ends at a read behind the first one that overlaps",
        origin="port",
        file=FILE,
        old="""
found = handle
handle = read.left
""",
        new="""
found = handle
break
""",
        suite="pending_reads",
        breaks="PR-9",
    ),
    Mutant(
        id="RD10",
        title="the latest token is said to be none",
        origin="port",
        file=FILE,
        old="return <uint32_t>token != 0 and <uint32_t>token < u32_load_relaxed(&reads.reads.used)",
        new="return <uint32_t>token != 0 and <uint32_t>token + 1 < u32_load_relaxed(&reads.reads.used)",
        suite="pending_reads",
        breaks="PR-10",
    ),
)
