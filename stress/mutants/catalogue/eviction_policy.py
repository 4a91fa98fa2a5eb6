"""Mistakes in structures/eviction_policy.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/eviction_policy.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="EP-settings",
        title="settings are changed while a pass runs",
        origin="port",
        file=FILE,
        old="""
monitor_enter(&policy.base.intake.monitor)
policy.base.settings = settings
monitor_leave(&policy.base.intake.monitor)
""",
        new="policy.base.settings = settings",
        suite="removal_queue",
        breaks="I65, I66",
        calls=((("put", 0, 1, 0), ("free", 200, 0)), (("configure", 1, 1),)),
        settings={"policy": (0, 0), "caches": (1, 1)},
    ),
    Mutant(
        id="M42",
        title="two passes run at once",
        origin="port",
        file=FILE,
        old="""
monitor_enter(&policy.base.intake.monitor)
while more and left > 0:
    more = policy.row.step(&policy.base, run)
    left -= 1
    if left % UNSETTLED == 0:
        pass_settle(&policy.base, run)
pass_settle(&policy.base, run)
monitor_leave(&policy.base.intake.monitor)
""",
        new="""
while more and left > 0:
    more = policy.row.step(&policy.base, run)
    left -= 1
    if left % UNSETTLED == 0:
        pass_settle(&policy.base, run)
pass_settle(&policy.base, run)
""",
        suite="removal_queue",
        breaks="I61, I22, I23",
    ),
)
