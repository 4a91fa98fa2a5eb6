"""``python -m stress.mutants.kill_table``: what each technique finds of each mutant, as
docs/kill-table.md."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pulsar_ml.errors import BadRecordError, UsageError
from stress.mutants.build import ROOT, AnchorError, build
from stress.mutants.faults import NOTICED, read
from stress.mutants.kill_page import blamed, page, survivors
from stress.mutants.results import DATA, Results, summary
from stress.mutants.sanitized_trials import trials as sanitized_trials
from stress.mutants.techniques import (
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
    """The cases of these mutants, "true core" for all of that; all cases when there is no name."""
    known = {case.selected or "true core": case for case in cases()}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(
            f"there is no mutant {', '.join(unknown)}; there are: {', '.join(known)}"
        )
    return [case for case in cases() if not names or (case.selected or "true core") in names]


def missing(
    technique: Technique, wanted: Sequence[Case], seeds: int, results: Results
) -> list[Case]:
    return [
        case
        for case in wanted
        if applies(technique, case) and results.lacks(technique, case, seeds)
    ]


def made(
    technique: Technique, wanted: Sequence[Case], seeds: int
) -> Iterator[tuple[Case, list[Trial]]]:
    """The trials of a technique, case by case; builds the module that they need."""
    if not wanted:
        return
    path = build(checked=technique.built == ENGINE, sanitized=technique.built == SANITIZER)
    if technique.built == SANITIZER:
        yield from sanitized_trials(path, wanted, seeds)
        return
    module = load(path)
    for case in wanted:
        yield case, attempts(technique, module, path, case, seeds_of(case, seeds))


def run(
    techniques: Sequence[Technique], wanted: Sequence[Case], seeds: int, results: Results
) -> None:
    """Make what is missing. What was made is in the file at once."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
    )
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, *times, console=console, transient=True) as bar:
        for technique in techniques:
            lacking = missing(technique, wanted, seeds, results)
            console.print(f"{technique.title}: {len(lacking)} cells to make", highlight=False)
            task = bar.add_task(technique.title, total=len(lacking))
            for case, trials in made(technique, lacking, seeds):
                results.add(summary(case, technique, trials))
                bar.update(task, advance=1, description=f"{technique.title}: {case.label}")
            bar.remove_task(task)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--mutant",
    "mutants",
    multiple=True,
    metavar="ID",
    help='Only these; "true core" is one of them.',
)
@click.option(
    "--technique", "names", multiple=True, type=click.Choice(list(TECHNIQUES)), help="Only these."
)
@click.option(
    "--seeds", default=20, show_default=True, type=click.IntRange(1), help="Of each cell."
)
@click.option("--page-only", is_flag=True, help="Make nothing; write the page from what there is.")
@click.option(
    "--results", "path", type=click.Path(path_type=Path), default=DATA, help="The cells, as CSV."
)
@click.option(
    "--page", "target", type=click.Path(path_type=Path), default=PAGE, help="Where to write it."
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

    A cell whose sources are what they were is not made again, so a run that was interrupted goes on from
    where it was.

    \b
    Exit codes: 0 every mutant is found by some technique or known to be equivalent, and the true core by
    none; 1 otherwise; 2 usage error; 4 failed; 130 interrupted.
    """
    wanted = chosen_cases(mutants)
    try:
        if page_only and not path.is_file():
            raise UsageError(f"there are no results in {path}; leave --page-only out to make them")
        results = Results(path)
        if not page_only:
            run([TECHNIQUES[name] for name in names or TECHNIQUES], wanted, seeds, results)
        target.write_text(page(results, cases(), read(NOTICED)))
    except (UsageError, BadRecordError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    except (AnchorError, RuntimeError, OSError) as error:
        click.echo(f"Failed: {error}", err=True)
        sys.exit(4)
    except KeyboardInterrupt:
        click.echo(f"Interrupted; {len(results.cells)} cells are in {path}", err=True)
        sys.exit(130)
    left, wrong = survivors(results, wanted), blamed(results, wanted)
    for case in left:
        click.echo(f"{case.label} survived: {case.mutant.title}", err=True)
    for cell in wrong:
        click.echo(f"{cell.case} was blamed by {cell.technique}: {cell.verdicts}", err=True)
    sys.exit(1 if left or wrong else 0)


if __name__ == "__main__":
    main()
