"""``python -m stress.mutants.wall_time``: the mutants that real threads find in a fixed time.

Each seed of a mutant gets the same wall time for trials as those of a sweep, in a process of its
own. The suite's invariants are checked, and no model is asked, as in the kill table's column of
real threads. A process that dies has found the mutant; one that makes no progress has, too, and
counts with the whole time.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from pulsar_ml.campaign.trial.trial import TrialOptions, load_native, run_trial
from pulsar_ml.campaign.turns import ends_at
from pulsar_ml.harness.search.child import STUCK, Limits, LostError, watch
from pulsar_ml.suites.registry import SUITES
from pulsar_ml.terminal.printer import echo
from stress.mutants.build import build
from stress.mutants.catalogue import CATALOGUE, Mutant
from stress.mutants.csv_rows import read_rows, write_rows
from stress.mutants.markdown import head, row

GRACE_SECONDS = 5.0  # beyond the time, before a process counts as stuck


@dataclass(frozen=True, slots=True)
class Cell:
    """One seed of a mutant; ``verdict`` is the broken invariant or the death, "" for neither."""

    mutant: str
    suite: str
    seed: int
    verdict: str
    milliseconds: int  # until the first failure, or in all


def cell(path: Path, mutant: Mutant, seed: int, seconds: float, runs: int) -> Cell:
    """Run the trials of one seed."""
    options = TrialOptions(module=str(path), mutant=mutant.id, runs=runs)
    suite = replace(SUITES[mutant.suite], model="")
    began = time.monotonic()
    verdicts: list[tuple[str, float]] = []

    def trials(send: Any) -> None:
        ends_at(began + seconds)
        number = 1000 * seed
        while time.monotonic() < began + seconds:
            if found := run_trial(suite, number, options).violations:
                send(found[0].invariant)
                return
            number += 1

    def note(verdict: str) -> None:
        verdicts.append((verdict, time.monotonic() - began))

    try:
        watch(trials, note, limits=Limits(wall=seconds + GRACE_SECONDS, cpu=None))
    except LostError as error:
        note(error.kind)
        if error.kind == STUCK:
            verdicts[-1] = error.kind, seconds
    found, spent = verdicts[0] if verdicts else ("", seconds)
    if spent > seconds:
        found, spent = "", seconds
    return Cell(mutant.id, mutant.suite, seed, found, round(1000 * spent))


def summary(tables: Sequence[Iterable[Cell]]) -> str:
    """The mutants that some and all seeds find, and when, by suite; each table has its columns."""
    suites: dict[str, dict[str, list[list[Cell]]]] = defaultdict(dict)
    for index, cells in enumerate(tables):
        for one in cells:
            columns = suites[one.suite].setdefault(one.mutant, [[] for _ in tables])
            columns[index].append(one)
    words = ("found", "by every seed", "seeds", "median ms")
    text = head("suite", "mutants", *(word for _ in tables for word in words))
    everything = {mutant: found for mutants in suites.values() for mutant, found in mutants.items()}
    for name, mutants in [*sorted(suites.items()), ("all", everything)]:
        figures: list[object] = []
        for index in range(len(tables)):
            rows = [columns[index] for columns in mutants.values()]
            hits = [one for seeds in rows for one in seeds if one.verdict]
            figures += [
                sum(any(one.verdict for one in seeds) for seeds in rows),
                sum(bool(seeds) and all(one.verdict for one in seeds) for seeds in rows),
                len(hits),
                f"{median(one.milliseconds for one in hits):.0f}" if hits else "-",
            ]
        text += row(name, len(mutants), *figures)
    return text


def fewer(before: Iterable[Cell], after: Iterable[Cell]) -> list[str]:
    """The mutants that fewer seeds of the second table find, with both numbers."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for index, cells in enumerate((before, after)):
        for one in cells:
            counts[one.mutant][index] += bool(one.verdict)
    return [f"{name} ({now} after {was})" for name, (was, now) in counts.items() if now < was]


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--mutant", "names", multiple=True, metavar="ID", help="Only this one; repeatable.")
@click.option("--seconds", default=2.0, show_default=True, help="Wall time of a seed.")
@click.option("--seeds", default=5, show_default=True, type=click.IntRange(1))
@click.option("--runs", default=0, show_default=True, help="Runs of a trial; 0: as sweeps choose.")
@click.option(
    "--results", type=click.Path(path_type=Path), required=True, help="CSV file of the cells."
)
@click.option(
    "--before", type=click.Path(path_type=Path), help="Cells to compare with, of other trials."
)
def main(
    names: tuple[str, ...],
    seconds: float,
    seeds: int,
    runs: int,
    results: Path,
    before: Path | None,
) -> None:
    """Run every mutant on real threads for the same time, and print what was found.

    Cells that the file has are not made again.
    """
    known = {mutant.id: mutant for mutant in CATALOGUE}
    if unknown := [name for name in names if name not in known]:
        raise click.UsageError(f"there is no mutant {', '.join(unknown)}")
    cells = read_rows(results, Cell) if results.exists() else []
    done = {(one.mutant, one.seed) for one in cells}
    path = build(checked=False)
    load_native(str(path))  # here, once, and not in each process
    for mutant in (known[name] for name in names or known):
        for seed in range(seeds):
            if (mutant.id, seed) not in done:
                cells.append(cell(path, mutant, seed, seconds, runs))
                write_rows(results, Cell, cells)
    earlier = [] if before is None else read_rows(before, Cell)
    echo(summary([earlier, cells] if earlier else [cells]))
    if fallen := fewer(earlier, cells):
        echo(f"fewer seeds find: {', '.join(fallen)}")


if __name__ == "__main__":
    sys.exit(main())
