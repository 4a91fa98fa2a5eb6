"""Mistakes in structures/ledger_scan.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/ledger_scan.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P02",
        title="the scan does not give back the wrapper that it emptied",
        origin="port",
        file=FILE,
        old="""
run.quota -= run.last.size
wrapper_recycle(&base.memory.wrappers, handle)
""",
        new="run.quota -= run.last.size",
        suite="eviction_policy",
        breaks="I23",
    ),
)
