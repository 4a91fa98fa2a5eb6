"""``python -m stress.mutants.kill_table``: what each technique finds of each mutant, as
docs/kill-table.md."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from stress.mutants.build import ROOT, AnchorError, build
from stress.mutants.kill_page import blamed, page, survivors
from stress.mutants.results import Results
from stress.mutants.sanitized_trials import trials as sanitized_trials
from stress.mutants.techniques import (
    ENGINE,
    SANITIZER,
    TECHNIQUES,
    Case,
    Technique,
    Trial,
    applies,
    attempt,
    cases,
    load,
)

RESULTS = ROOT / "runs" / "kill-table.jsonl"
PAGE = ROOT / "docs" / "kill-table.md"


def chosen_cases(names: Sequence[str]) -> list[Case]:
    """The cases of these mutants, "true core" for all of that; all cases when there is no name."""
    known = {case.selected or "true core": case for case in cases()}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"there is no mutant {', '.join(unknown)}; there are: {', '.join(known)}")
    return [case for case in cases() if not names or (case.selected or "true core") in names]


def missing(
    technique: Technique, wanted: Iterable[Case], seeds: int, results: Results
) -> list[tuple[Case, int]]:
    return [
        (case, seed)
        for seed in range(
            min(seeds, technique.seeds)
        )  # outermost: an interrupted table is one of fewer seeds
        for case in wanted
        if applies(technique, case)
        if (case.label, technique.name, seed) not in results.trials
    ]


def made(technique: Technique, wanted: Sequence[tuple[Case, int]]) -> Iterator[Trial]:
    """The trials of a technique, one after the other; builds the module that they need."""
    if not wanted:
        return
    path = build(checked=technique.built == ENGINE, sanitized=technique.built == SANITIZER)
    if technique.built == SANITIZER:
        yield from sanitized_trials(path, wanted)
        return
    module = load(path)
    for case, seed in wanted:
        yield attempt(technique, module, path, case, seed)


def run(techniques: Sequence[Technique], wanted: Sequence[Case], seeds: int, results: Results) -> None:
    """Make what is missing. What was made is in the file at once."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        for technique in techniques:
            lacking = missing(technique, wanted, seeds, results)
            console.print(f"{technique.title}: {len(lacking)} trials to make", highlight=False)
            task = bar.add_task(technique.title, total=len(lacking))
            for trial in made(technique, lacking):
                results.add(trial)
                bar.update(task, advance=1, description=f"{technique.title}: {trial.case}")
            bar.remove_task(task)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--mutant", "mutants", multiple=True, metavar="ID", help='Only these; "true core" is one of them.'
)
@click.option("--technique", "names", multiple=True, type=click.Choice(list(TECHNIQUES)), help="Only these.")
@click.option("--seeds", default=20, show_default=True, type=click.IntRange(1), help="Of each mutant.")
@click.option("--results", "path", type=click.Path(path_type=Path), default=RESULTS, help="Lines of JSON.")
@click.option(
    "--page",
    "target",
    type=click.Path(path_type=Path),
    help="Default: docs/kill-table.md for the whole table.",
)
def main(
    mutants: tuple[str, ...], names: tuple[str, ...], seeds: int, path: Path, target: Path | None
) -> None:
    """Run every mutant, and the true core, through every technique; what was made before is not made again.

    \b
    Exit codes: 0 every mutant is found by some technique or known to be equivalent, and the true core by
    none; 1 otherwise; 2 usage error; 4 failed; 130 interrupted (a rerun goes on from there).
    """
    techniques = [TECHNIQUES[name] for name in names or TECHNIQUES]
    wanted = chosen_cases(mutants)
    every = ((technique, case) for technique in TECHNIQUES.values() for case in cases())
    results = Results(path, every, seeds=seeds)
    try:
        run(techniques, wanted, seeds, results)
    except (AnchorError, RuntimeError, OSError) as error:
        click.echo(f"Failed: {error}", err=True)
        sys.exit(4)
    except KeyboardInterrupt:
        click.echo(f"Interrupted; {len(results.trials)} trials are in {path}", err=True)
        sys.exit(130)
    text = page(results, techniques, wanted, seeds)
    if target or not (mutants or names):
        (target or PAGE).write_text(text)
    else:
        click.echo(text)
    left, wrong = survivors(results, techniques, wanted), blamed(results, techniques, wanted)
    for case in left:
        click.echo(f"{case.label} survived: {case.mutant.title}", err=True)
    for trial in wrong:
        click.echo(
            f"{trial.case} was blamed by {trial.technique}, seed {trial.seed}: {trial.verdict}", err=True
        )
    sys.exit(1 if left or wrong else 0)


if __name__ == "__main__":
    main()
