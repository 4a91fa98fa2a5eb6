"""Mistakes in structures/ledger_scan.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/ledger_scan.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="P05",
        title="the scan removes an entry outside its wrapper's section",
        origin="port",
        file=FILE,
        old="""
stamped_lock_write(&wrapper.lock)
found = wrapper_holds(wrapper, &base.memory.map, cache, key)
if found:
    due = not run.by_time or pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold)
    if due:
        pass_remove(base, run, handle, wrapper)
stamped_unlock_write(&wrapper.lock)
""",
        new="""
found = wrapper_holds(wrapper, &base.memory.map, cache, key)
if found:
    due = not run.by_time or pass_is_before(i64_load_relaxed(&wrapper.timestamp), run.threshold)
    if due:
        pass_remove(base, run, handle, wrapper)
""",
        suite="removal_queue",
        breaks="LS-3, I32",
        calls=(
            (("put", 0, 1, 0), ("put", 0, 2, 0), ("remove_range", 0, 0, 3)),
            (("free", 200, 0), ("free", 200, 0)),
        ),
        settings={"policy": (3, 3), "caches": (1, 1)},
    ),
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
