"""Mistakes in structures/active_groups.pxd."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/active_groups.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="H19",
        title="a cursor that is no longer tracked keeps its group",
        origin="#26629",
        file=FILE,
        old="""
ptr_store_release(&cursor.group, NULL)
group.members -= 1
""",
        new="group.members -= 1",
        suite="active_cursors",
        breaks="I72, I73, I74",
    ),
    Mutant(
        id="L01",
        title="the tail leaves a shared group forward and the group's rank stays",
        origin="all revisions read",
        file=FILE,
        old="group_add(group, -1)",
        new="""
if group.after is not NULL:
    group_add(group, -1)
""",
        suite="active_cursors",
        breaks="I73",
    ),
    Mutant(
        id="L01b",
        title="the tail moves back onto its predecessor and the rank there stays",
        origin="all revisions read",
        file=FILE,
        old="group_add(before, 1)",
        new="""
if group is NULL or after is not NULL or position_less(target.at, before.at):
    group_add(before, 1)
""",
        suite="active_cursors",
        breaks="I73",
    ),
    Mutant(
        id="C03",
        title="a cursor overtakes another one in place",
        origin="port",
        file=FILE,
        old="""
return (group.members == 1 and cursor.target.tracked
        and (group.before is NULL or position_less(group.before.at, cursor.target.at))
        and (group.after is NULL or position_less(cursor.target.at, group.after.at)))
""",
        new="""
return (group.members == 1 and cursor.target.tracked
        and (group.before is NULL or position_less(group.before.at, cursor.target.at)))
""",
        suite="active_cursors",
        breaks="I72, I73",
    ),
)
