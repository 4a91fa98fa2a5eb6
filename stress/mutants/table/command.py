"""The command that makes the cells of the kill table and writes docs/kill-table.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printer import echo
from stress.mutants.build import ROOT, AnchorError, build
from stress.mutants.faults.results import FAULTS, read
from stress.mutants.table.page import false_alarms, page, survivors
from stress.mutants.table.results import DATA, Results, summary
from stress.mutants.table.sanitized_trials import trials as sanitized_trials
from stress.mutants.table.techniques import (
    ENGINE,
    SANITIZER,
    TECHNIQUES,
    Case,
    Technique,
    Trial,
    applies,
    attempts,
    cases,
    load,
    seeds_of,
)

PAGE = ROOT / "docs" / "kill-table.md"


def chosen_cases(names: Sequence[str]) -> list[Case]:
    """The cases of these mutants; all cases if there is no name.

    The name "true core" stands for all cases of the true core.
    """
    known = {case.selected or "true core": case for case in cases()}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(
            f"there is no mutant {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    return [case for case in cases() if not names or (case.selected or "true core") in names]


def missing(
    technique: Technique, chosen: Sequence[Case], seeds: int, results: Results
) -> list[Case]:
    """The cases whose cell of this technique has to be made."""
    return [
        case
        for case in chosen
        if applies(technique, case) and results.lacks(technique, case, seeds)
    ]


def run_trials(
    technique: Technique, chosen: Sequence[Case], seeds: int
) -> Iterator[tuple[Case, list[Trial]]]:
    """Yields the trials of a technique, case by case. Builds the module that they need."""
    if not chosen:
        return
    path = build(checked=technique.build == ENGINE, sanitized=technique.build == SANITIZER)
    if technique.build == SANITIZER:
        yield from sanitized_trials(path, chosen, seeds)
        return
    module = load(path)
    for case in chosen:
        yield case, attempts(technique, module, path, case, seeds_of(case, seeds))


def run(
    techniques: Sequence[Technique], chosen: Sequence[Case], seeds: int, results: Results
) -> None:
    """Makes the missing cells. Each is in the file as soon as it is made."""
    console = new_console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
    )
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True) as bar:
        for technique in techniques:
            lacking = missing(technique, chosen, seeds, results)
            console.print(f"{technique.title}: {len(lacking)} cells to make", highlight=False)
            task = bar.add_task(technique.title, total=len(lacking))
            for case, trials in run_trials(technique, lacking, seeds):
                results.add(summary(case, technique, trials))
                bar.update(task, advance=1, description=f"{technique.title}: {case.label}")
            bar.remove_task(task)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--mutant",
    "mutants",
    multiple=True,
    metavar="ID",
    help='Only this mutant; "true core" for the unchanged code. May be repeated.',
)
@click.option(
    "--technique",
    "names",
    multiple=True,
    type=click.Choice(list(TECHNIQUES)),
    help="Only this technique. May be repeated.",
)
@click.option(
    "--seeds", default=20, show_default=True, type=click.IntRange(1), help="Seeds of each cell."
)
@click.option("--page-only", is_flag=True, help="Write the page from the results in the file.")
@click.option(
    "--results",
    "path",
    type=click.Path(path_type=Path),
    default=DATA,
    help="CSV file of the cells.",
)
@click.option(
    "--page",
    "target",
    type=click.Path(path_type=Path),
    default=PAGE,
    help="File to write the page to.",
)
def main(
    mutants: tuple[str, ...],
    names: tuple[str, ...],
    seeds: int,
    page_only: bool,
    path: Path,
    target: Path,
) -> None:
    """Run every mutant, and the true core, through every technique, and write the page.

    A cell whose sources have not changed is not made again, so an interrupted run continues at the
    cell where it stopped.

    \b
    Exit codes: 0 every mutant is found by some technique or known to be equivalent, and the true
    core is reported by none; 1 otherwise; 2 usage error; 4 failed; 130 interrupted.
    """
    chosen = chosen_cases(mutants)
    try:
        if page_only and not path.is_file():
            raise UsageError(f"there are no results in {path}; run without --page-only")
        results = Results(path)
        target.open("a").close()  # a place where no page can be is named before the work
        if not page_only:
            run([TECHNIQUES[name] for name in names or TECHNIQUES], chosen, seeds, results)
        target.write_text(page(results, cases(), read(FAULTS)))
    except (UsageError, BadRecordError) as error:
        echo(f"Error: {error}", err=True)
        sys.exit(2)
    except (AnchorError, RuntimeError, OSError) as error:
        echo(f"Failed: {error}", err=True)
        sys.exit(4)
    except KeyboardInterrupt:
        echo(f"Interrupted; {len(results.cells)} cells are in {path}", err=True)
        sys.exit(130)
    alive, alarms = survivors(results, chosen), false_alarms(results, chosen)
    for case in alive:
        echo(f"{case.label} survived: {case.mutant.title}", err=True)
    for cell in alarms:
        echo(f"false alarm of {cell.technique} in {cell.case}: {cell.verdicts}", err=True)
    sys.exit(1 if alive or alarms else 0)
