"""The kill table as a page, generated from the cells and the faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from stress.mutants.faults.results import FaultResult, fault_tables
from stress.mutants.faults.weakened_orders import fault_origin
from stress.mutants.markdown import head, row
from stress.mutants.sources.digests import engine_digest
from stress.mutants.sources.origin import Origin
from stress.mutants.table.excluded import EXCLUDED
from stress.mutants.table.origins import origin_of
from stress.mutants.table.results import Cell, Results
from stress.mutants.table.techniques import (
    CORE,
    CORE_SEEDS,
    CORE_TIMES,
    DIRECTED,
    ENGINE,
    LIMITS,
    STUCK_SEEDS,
    TECHNIQUES,
    Case,
    Technique,
)

HEAD = """\
# Kill table

The table shows which technique finds which of the [mutants](mutants.md), and that no technique
reports anything of the true core. Below it stands what the engine reports when an order is
weakened, a fence dropped or a lock ignored. `make kill-table` makes the missing results and writes
this page from `stress/mutants/data/`.

All columns but the last are blind: their programs are those that the suite generates, as
`pulsar-ml explore` does. The column *directed* has programs that were written for a mutant.

A cell counts the seeds that found the mutant. Budgets are counts, not times, so the engine's
columns are the same on every machine. Schedules of real threads, and times, are those of one
machine with two processors that did other work as well.

| technique | how it looks for a mutant | budget of a seed |
| --- | --- | --- |
"""

TAIL = """
A seed ends with its first failure. A process that crashes counts as found, and so does a program on
real threads that uses {threads:g} s of the processor without an end, or an execution in the engine
that uses {engine:g} s. If the first {stuck} seeds run out of time, the others are not tried.
"""

SOURCES = "## Sources"
SOURCES_TEXT = """
{heading}

Each result keeps digests of everything on which it depends: the code of the structure, of its
operations and of the mutant; the programs; the suite's model; and the engine. Comments, layout and
moves change no digest. An engine counts as the one before where `python -m tools.sweep_digest` and
explorations of each suite showed the same samples of both (`SAME_SAMPLES` of
`stress/mutants/sources/digests.py`). Older results stay until `make kill-table` makes them again.

Of {total:,} results {present:,} were of the present sources when this page was written (engine
`{engine}`), and {older:,} were of older sources:

"""

COLUMNS = tuple(TECHNIQUES.values())


def survivors(results: Results, chosen: Iterable[Case]) -> list[Case]:
    """Mutants that were tried and that no technique found, without the equivalent ones."""
    return [
        case
        for case in chosen
        if case.selected and not case.mutant.equivalent
        if (cells := cells_of(results, case)) and not any(cell.found for cell in cells)
    ]


def cells_of(results: Results, case: Case) -> list[Cell]:
    return [cell for one in COLUMNS if (cell := results.of(case, one)) is not None]


def false_alarms(results: Results, chosen: Iterable[Case]) -> list[Cell]:
    """Cells in which the true core, or an equivalent mutant, was reported."""
    return [
        cell
        for case in chosen
        if case.selected is None or case.mutant.equivalent
        for cell in cells_of(results, case)
        if cell.found
    ]


def page(results: Results, every: Sequence[Case], faults: Sequence[FaultResult]) -> str:
    mutants = [case for case in every if case.selected]
    text = HEAD
    for one in COLUMNS:
        text += row(one.title, one.summary, f"{one.budget:,} {one.unit}")
    text += TAIL.format(threads=LIMITS["threads"].cpu, engine=LIMITS[ENGINE].cpu, stuck=STUCK_SEEDS)
    text += summary(results, every)
    text += first_failures(results, mutants)
    text += rarely_blind(results, mutants)
    text += overview(results, mutants)
    text += exceptions(results, mutants)
    text += true_core(results, [case for case in every if case.selected is None])
    text += sources(results, every, faults)
    text += fault_tables(faults)
    for one in COLUMNS:
        text += details(results, one, mutants)
    return text


def counted(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.found}/{cell.seeds}"


def summary(results: Results, every: Sequence[Case]) -> str:
    """Totals, and the mutants that only one technique finds."""
    mutants = [case for case in every if case.selected]
    found_by = {
        case.label: {cell.technique for cell in cells_of(results, case) if cell.found}
        for case in mutants
        if not case.mutant.equivalent
    }
    equivalent = [case for case in mutants if case.mutant.equivalent]
    blind = sum(bool(techniques - {DIRECTED}) for techniques in found_by.values())
    written = sum(techniques == {DIRECTED} for techniques in found_by.values())
    cores = [cell for case in every if not case.selected for cell in cells_of(results, case)]
    alarms = sum(cell.found > 0 for cell in cores)
    text = "\n## Summary\n\n"
    text += f"{len(mutants)} mutants: {blind} found blind by some technique, {written} only by "
    text += f"programs written for them, {len(equivalent)} equivalent,\n"
    text += f"{len(survivors(results, mutants))} not found.\n"
    text += f"The true core: {len(cores)} cells, {alarms} with a report.\n\n"
    text += head(
        "technique", "mutants found by some seed", "by every seed", "by no other", "mutants tried"
    )
    for one in COLUMNS:
        tried = [cell for case in mutants if (cell := results.of(case, one)) is not None]
        some = sum(cell.found > 0 for cell in tried)
        all_seeds = sum(cell.found == cell.seeds for cell in tried)
        alone = sum(techniques == {one.name} for techniques in found_by.values())
        text += row(one.title, some, all_seeds, alone, len(tried))
    return text


def first_failures(results: Results, mutants: Sequence[Case]) -> str:
    """Effort until the first failure, blind against directed, for mutants that have both."""
    lines = ""
    for case in mutants:
        written = results.of(case, TECHNIQUES[DIRECTED])
        if written is None:
            continue
        blind = [
            cell
            for one in COLUMNS
            if one.build == ENGINE and one.name != DIRECTED and (cell := results.of(case, one))
        ]
        best = max(blind, key=lambda cell: (cell.found, -float(cell.seconds or 0)), default=None)
        title = TECHNIQUES[best.technique].title if best is not None and best.found else "-"
        lines += row(case.label, title, *effort(best), *effort(written))
    if not lines:
        return ""
    text = "\n## Blind against directed\n\nThe blind technique of the engine that finds the mutant "
    text += "with most seeds, and the programs that were\nwritten for it. Medians until the first "
    text += "failure, of the seeds that found it.\n\n"
    columns = ("found", "executions", "seconds")
    directed = (f"directed: {columns[0]}", *columns[1:])
    return text + head("mutant", "best blind technique", *columns, *directed) + lines


def rarely_blind(results: Results, mutants: Sequence[Case]) -> str:
    """Mutants that the written programs find with every seed, and no blind technique of the engine
    does with as many seeds."""
    lines = ""
    for case in mutants:
        written = results.of(case, TECHNIQUES[DIRECTED])
        if written is None or written.found < written.seeds:
            continue
        blind = {
            one.title: cell
            for one in COLUMNS
            if one.name != DIRECTED and (cell := results.of(case, one)) is not None
        }
        if any(cell.found == cell.seeds >= written.seeds for cell in blind.values()):
            continue
        title, best = max(
            blind.items(), key=lambda one: (one[1].found / one[1].seeds, one[1].found)
        )
        reason = "a part of the seeds finds it" if best.found else "no seed finds it"
        if best.found == best.seeds:
            reason = "no more seeds were tried"
        lines += row(case.label, counted(written), f"{counted(best)} of {title}", reason)
    if not lines:
        return ""
    text = "\n### Not found blind with as many seeds\n\nThe written programs find these with every "
    text += "seed.\n\n"
    return text + head("mutant", "directed", "best blind", "reason") + lines


def effort(cell: Cell | None) -> tuple[str, str, str]:
    if cell is None or not cell.found:
        return counted(cell), "-", "-"
    return counted(cell), f"{int(cell.first):,}", cell.seconds


def overview(results: Results, mutants: Sequence[Case]) -> str:
    text = "\n## Mutants\n\n"
    text += head("mutant", "mistake", "suite", "breaks", *(one.title for one in COLUMNS))
    for case in mutants:
        cells = [counted(results.of(case, one)) for one in COLUMNS]
        text += row(case.label, case.mutant.title, case.mutant.suite, case.mutant.breaks, *cells)
    text += "\n`-`: not tried; the suite has no sequential model, the catalogue has no program for "
    return text + "the\nmutant, or the mutant or the column is newer than the results.\n"


def exceptions(results: Results, mutants: Sequence[Case]) -> str:
    """Survivors, equivalent mutants, and bugs that have no mutant."""
    text = ""
    if left := survivors(results, mutants):
        text += "\n## Survivors\n\nNo technique found these within its budget.\n\n"
        text += head("mutant", "mistake", "suite")
        text += "".join(row(case.label, case.mutant.title, case.mutant.suite) for case in left)
    if equivalent := [case for case in mutants if case.mutant.equivalent]:
        text += "\n## Equivalent mutants\n\n" + head("mutant", "change", "why it changes nothing")
        for case in equivalent:
            text += row(case.label, case.mutant.title, case.mutant.equivalent)
    text += "\n## Not in the catalogue\n\n" + head("bug", "why")
    return text + "".join(row(*line) for line in EXCLUDED.items())


def true_core(results: Results, cores: Sequence[Case]) -> str:
    text = f"\n## The true core\n\nEach cell has up to {CORE_SEEDS} seeds, each with {CORE_TIMES} "
    text += (
        "times the\nbudget, or the budget once in the column *explore*. It shows the seeds that "
    )
    text += (
        "reported something,\nand the programs or executions of all seeds. Below the suites stand "
    )
    text += "the mutants that have programs\nof their own.\n\n"
    text += head("programs of", *(one.title for one in COLUMNS))
    for case in cores:
        cells = [results.of(case, one) for one in COLUMNS]
        texts = ["-" if cell is None else f"{counted(cell)}; {cell.spent:,}" for cell in cells]
        text += row(case.label.removeprefix(f"{CORE}, ").removeprefix("programs of "), *texts)
    return text


def sources(results: Results, every: Sequence[Case], faults: Sequence[FaultResult]) -> str:
    """Counts of the results whose origin is today's, and of the older ones by part."""
    ages = {
        one.title: [
            cell.origin.differing(origin_of(one, case))
            for case in every
            if (cell := results.of(case, one)) is not None
        ]
        for one in COLUMNS
    }
    ages["orders and locks"] = [
        one.origin.differing(fault_origin(one.file, one.suite)) for one in faults
    ]
    total = sum(map(len, ages.values()))
    older = sum(bool(differing) for column in ages.values() for differing in column)
    text = SOURCES_TEXT.format(
        heading=SOURCES, total=total, present=total - older, older=older, engine=engine_digest()
    )
    parts = [field.name for field in fields(Origin)]
    text += head("technique", "results", "present", *(f"older {name}" for name in parts))
    for title, column in ages.items():
        counts = (sum(name in differing for differing in column) for name in parts)
        text += row(title, len(column), sum(not differing for differing in column), *counts)
    return text


def details(results: Results, technique: Technique, mutants: Sequence[Case]) -> str:
    lines = ""
    for case in mutants:
        cell = results.of(case, technique)
        if cell is not None and cell.found:
            size = [cell.size or "-"] if technique.build == ENGINE else []
            first = f"{int(cell.first):,}"
            lines += row(case.label, counted(cell), first, cell.seconds, cell.verdicts, *size)
    if not lines:
        return ""
    text = f"\n## {technique.title.capitalize()}\n\n"
    text += "Medians until the first failure, of the seeds that found it.\n\n"
    sizes = ["size after shrinking"] if technique.build == ENGINE else []
    return text + head("mutant", "found", technique.unit, "seconds", "reported as", *sizes) + lines
