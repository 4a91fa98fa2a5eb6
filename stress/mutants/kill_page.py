"""The kill table as a page. All of it is generated: from the cells, the faults, and the reasons beside the
mutants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from stress.mutants.faults import Noticed, fault_tables
from stress.mutants.left_out import LEFT_OUT
from stress.mutants.markdown import head, row
from stress.mutants.origin import Origin, origin_of
from stress.mutants.results import Cell, Results
from stress.mutants.sources import engine_digest
from stress.mutants.techniques import (
    CORE,
    CORE_SEEDS,
    CORE_TIMES,
    ENGINE,
    LIMITS,
    STUCK_SEEDS,
    TECHNIQUES,
    Case,
    Technique,
)
from stress.mutants.weakened import fault_origin

HEAD = """\
# Kill table

What each technique finds of the mutants (see [mutants](mutants.md)), that it is silent on the true core,
and what the engine notices when an order is weakened, a fence left out, or a lock ignored. `make kill-table`
makes what is missing and writes this page, from `stress/mutants/data/`.

A cell counts the seeds that found the mutant. Budgets are counted, not timed, so the engine's columns come
out the same elsewhere. Schedules of real threads, and times, are those of one machine with two processors
that was busy with other work.

| technique | what it does | budget of a seed |
| --- | --- | --- |
"""

TAIL = """
A seed ends with its first failure. A process that crashed counts as found, and so does one that did not come
to the end of a program or an execution within {threads:g} s of the processor on real threads, {engine:g} s in
the engine. Where the first {stuck} seeds come to no end, the others are not tried.
"""

TECHNIQUES_IN_ORDER = tuple(TECHNIQUES.values())

SANITIZED = "tsan"  # the technique that knows no fences


def survivors(results: Results, wanted: Iterable[Case]) -> list[Case]:
    """Mutants that were tried and that no technique found, but for those known to be equivalent."""
    return [
        case
        for case in wanted
        if case.selected and not case.mutant.equivalent
        if (cells := cells_of(results, case)) and not any(cell.found for cell in cells)
    ]


def cells_of(results: Results, case: Case) -> list[Cell]:
    return [cell for one in TECHNIQUES_IN_ORDER if (cell := results.of(case, one)) is not None]


def blamed(results: Results, wanted: Iterable[Case]) -> list[Cell]:
    """Cells in which the true core, or an equivalent mutant, was reported.

    What the thread sanitizer says of one that is equivalent by a fence does not count.
    """
    return [
        cell
        for case in wanted
        if case.selected is None or case.mutant.equivalent
        for cell in cells_of(results, case)
        if cell.found and not (case.selected and case.mutant.fenced and cell.technique == SANITIZED)
    ]


def page(results: Results, every: Sequence[Case], noticed: Sequence[Noticed]) -> str:
    mutants = [case for case in every if case.selected]
    text = HEAD
    for one in TECHNIQUES_IN_ORDER:
        text += row(one.title, one.what, f"{one.budget:,} {one.unit}")
    text += TAIL.format(threads=LIMITS["threads"].cpu, engine=LIMITS[ENGINE].cpu, stuck=STUCK_SEEDS)
    text += summary(results, every)
    text += overview(results, mutants)
    text += exceptions(results, mutants)
    text += true_core(results, [case for case in every if case.selected is None])
    text += sources(results, every, noticed)
    text += fault_tables(noticed)
    for one in TECHNIQUES_IN_ORDER:
        text += details(results, one, mutants)
    return text


def counted(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.found}/{cell.seeds}"


def summary(results: Results, every: Sequence[Case]) -> str:
    """What came of all, and what each technique gives that the others do not."""
    mutants = [case for case in every if case.selected]
    by = {
        case.label: {cell.technique for cell in cells_of(results, case) if cell.found}
        for case in mutants
        if not case.mutant.equivalent
    }
    same = [case for case in mutants if case.mutant.equivalent]
    found = sum(bool(techniques) for techniques in by.values())
    cores = [cell for case in every if not case.selected for cell in cells_of(results, case)]
    told = sum(cell.found > 0 for cell in cores)
    text = "\n## Summary\n\n"
    text += f"{len(mutants)} mutants: {found} found by some technique, {len(same)} equivalent, "
    text += f"{len(survivors(results, mutants))} not found.\n"
    text += f"The true core: {len(cores)} cells, {told} in which something was reported.\n\n"
    text += head(
        "technique", "mutants found by some seed", "by every seed", "by no other", "mutants tried"
    )
    for one in TECHNIQUES_IN_ORDER:
        tried = [cell for case in mutants if (cell := results.of(case, one)) is not None]
        some = sum(cell.found > 0 for cell in tried)
        alone = sum(techniques == {one.name} for techniques in by.values())
        text += row(
            one.title, some, sum(cell.found == cell.seeds for cell in tried), alone, len(tried)
        )
    return text


SOURCES = "## Sources"


def sources(results: Results, every: Sequence[Case], noticed: Sequence[Noticed]) -> str:
    """How many results are of the present sources, and in which part the others are older."""
    ages = {
        one.title: [
            cell.origin.differing(origin_of(one, case))
            for case in every
            if (cell := results.of(case, one)) is not None
        ]
        for one in TECHNIQUES_IN_ORDER
    }
    ages["orders and locks"] = [
        one.origin.differing(fault_origin(one.file, one.suite)) for one in noticed
    ]
    total = sum(map(len, ages.values()))
    older = sum(bool(parts) for column in ages.values() for parts in column)
    parts = [one.name for one in fields(Origin)]
    text = f"\n{SOURCES}\n\nEach result keeps digests of everything on which it depends: the code of the "
    text += "structure, its operations and the mutant; the programs; the suite's model; and the engine. "
    text += (
        "Comments, layout and moves change no digest. Older results stay until `make kill-table` "
    )
    text += f"makes them again.\n\nOf {total:,} results {total - older:,} were of the present sources when "
    text += f"this page was written (engine `{engine_digest()}`), and {older:,} were older:\n\n"
    text += head("technique", "results", "present", *(f"older {name}" for name in parts))
    for title, column in ages.items():
        counts = (sum(name in differing for differing in column) for name in parts)
        text += row(title, len(column), sum(not differing for differing in column), *counts)
    return text


def overview(results: Results, mutants: Sequence[Case]) -> str:
    text = "\n## Mutants\n\n"
    text += head(
        "mutant", "mistake", "suite", "breaks", *(one.title for one in TECHNIQUES_IN_ORDER)
    )
    for case in mutants:
        cells = [counted(results.of(case, one)) for one in TECHNIQUES_IN_ORDER]
        text += row(case.label, case.mutant.title, case.mutant.suite, case.mutant.breaks, *cells)
    return (
        text + "\n`-`: not tried; the suite has no sequential model, or the mutant came in later.\n"
    )


def exceptions(results: Results, mutants: Sequence[Case]) -> str:
    text = ""
    if left := survivors(results, mutants):
        text += "\n## Survivors\n\nNo technique found these within its budget.\n\n"
        text += head("mutant", "mistake", "suite")
        text += "".join(row(case.label, case.mutant.title, case.mutant.suite) for case in left)
    if same := [case for case in mutants if case.mutant.equivalent]:
        text += "\n## Equivalent mutants\n\n" + head("mutant", "change", "why nothing can tell")
        text += "".join(row(case.label, case.mutant.title, same_as(results, case)) for case in same)
    text += "\n## Not in the catalogue\n\n" + head("bug", "why")
    return text + "".join(row(*line) for line in LEFT_OUT.items())


def same_as(results: Results, case: Case) -> str:
    """Why a mutant is equivalent, with what the thread sanitizer says of it all the same."""
    cell = results.cells.get((case.label, SANITIZED))
    if not case.mutant.fenced or cell is None or not cell.found:
        return case.mutant.equivalent
    return (
        f"{case.mutant.equivalent} The thread sanitizer, which knows no fences, reports it "
        f"({counted(cell)} seeds); that says nothing."
    )


def true_core(results: Results, wanted: Sequence[Case]) -> str:
    text = f"\n## The true core\n\n{CORE_SEEDS} seeds, each with {CORE_TIMES} times "
    text += "the budget: those that reported "
    text += "something; programs or executions in all.\nBelow the suites stand the mutants that have programs "
    text += "of their own.\n\n"
    text += head("programs of", *(one.title for one in TECHNIQUES_IN_ORDER))
    for case in wanted:
        cells = [results.of(case, one) for one in TECHNIQUES_IN_ORDER]
        told = ["-" if cell is None else f"{counted(cell)}; {cell.made:,}" for cell in cells]
        text += row(case.label.removeprefix(f"{CORE}, ").removeprefix("programs of "), *told)
    return text


def details(results: Results, technique: Technique, mutants: Sequence[Case]) -> str:
    lines = ""
    for case in mutants:
        cell = results.of(case, technique)
        if cell is not None and cell.found:
            size = [cell.size or "-"] if technique.built == ENGINE else []
            first = f"{int(cell.first):,}"
            lines += row(case.label, counted(cell), first, cell.seconds, cell.verdicts, *size)
    if not lines:
        return ""
    text = f"\n## {technique.title.capitalize()}\n\n"
    text += "Medians until the first failure, of the seeds that found it.\n\n"
    sizes = ["size after shrinking"] if technique.built == ENGINE else []
    return text + head("mutant", "found", technique.unit, "seconds", "reported as", *sizes) + lines
