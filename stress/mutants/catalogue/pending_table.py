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
if read.joinable and read.ledger_id == ledger_id and read.first <= last and read.last >= first:
    if not found or read.first < pending_read_at(reads, found).first:
        found = handle
""",
        new="""
if read.joinable and read.first <= last and read.last >= first:
    if not found or read.first < pending_read_at(reads, found).first:
        found = handle
""",
        suite="pending_reads",
        breaks="I85",
    ),
)
