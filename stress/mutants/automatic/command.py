"""The command that hunts a sample of automatic mutants and writes docs/automatic-mutants.md."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from pulsar_ml.campaign.trial.trial import load_native
from pulsar_ml.errors import BadRecordError, BuildError, UsageError
from pulsar_ml.suites.registry import SUITES
from pulsar_ml.terminal.printer import echo
from stress.mutants.automatic.hunting import Outcome, hunt, hunt_on_threads, suites_of
from stress.mutants.automatic.page import page, tables
from stress.mutants.automatic.points import Point, points, sample
from stress.mutants.automatic.results import (
    DATA,
    HELD_OUT,
    REASONS,
    Results,
    readings,
    result_of,
    score,
)
from stress.mutants.automatic.schemata import build
from stress.mutants.build import ROOT

PAGE = ROOT / "docs" / "automatic-mutants.md"


def chosen_points(size: int, seed: int, places: str) -> list[Point]:
    """A sample of the mutants whose names contain ``places``."""
    offered = [point for point in points() if places in point.id]
    if not offered:
        raise click.UsageError(f"no automatic mutant has {places!r} in its name; see --list")
    return sample(size, seed, offered)


def false_alarms(names: Sequence[str]) -> list[str]:
    """Reports about the unchanged core, in the programs that hunt mutants."""
    module = load_native(str(build()))
    reports = []
    for name in names:
        done = hunt(module, None, (SUITES[name],))
        if done.technique:
            reports.append(f"{done.technique} reports {done.verdict} of the true core in {name}")
    return reports


def result_line(number: int, total: int, point: Point, done: Outcome) -> str:
    found = f"{done.technique} of {done.suite} ({done.verdict})" if done.technique else "SURVIVED"
    if not done.technique and not done.reached:
        found = "SURVIVED, no program reached it"
    return f"{number}/{total} {point.id}: {found}; {done.executions:,} executions, {done.seconds:.1f} s"


def joined(first: Outcome, extra: Outcome) -> Outcome:
    """The outcome of two hunts, of which the first found nothing."""
    return replace(
        extra,
        executions=first.executions,
        seconds=first.seconds + extra.seconds,
        reached=first.reached or extra.reached,
    )


def run(chosen: Sequence[Point], results: Results, *, threads: bool) -> None:
    """Hunts the mutants that have no result of the present sources."""
    lacking = [point for point in chosen if results.of(point) is None]
    echo(f"{len(lacking)} of {len(chosen)} mutants to hunt", err=True)
    if not lacking:
        return
    module = load_native(str(build()))
    native = str(build(checked=False)) if threads else ""
    for number, point in enumerate(lacking, 1):
        suites = suites_of(point.file)
        done = hunt(module, point, suites)
        if not done.technique and native:
            done = joined(done, hunt_on_threads(native, point, suites[0]))
        results.add(result_of(point, done))
        echo(result_line(number, len(lacking), point, done), err=True)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--sample", "size", default=100, show_default=True, type=click.IntRange(1), help="Mutants."
)
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="Of the sample.")
@click.option(
    "--place", metavar="TEXT", default="", help="Only mutants with this text in their name."
)
@click.option("--threads/--no-threads", default=True, help="Try survivors on real threads as well.")
@click.option("--list", "listed", is_flag=True, help="Print the names of all mutants.")
@click.option("--core", is_flag=True, help="Run the unchanged core in the same programs.")
@click.option("--page-only", is_flag=True, help="Write the page from the results in the file.")
@click.option(
    "--results", "path", type=click.Path(path_type=Path), default=DATA, help="CSV file of results."
)
@click.option(
    "--page", "target", type=click.Path(path_type=Path), default=PAGE, help="File of the page."
)
def main(
    size: int,
    seed: int,
    place: str,
    threads: bool,
    listed: bool,
    core: bool,
    page_only: bool,
    path: Path,
    target: Path,
) -> None:
    """Hunt a random sample of the automatic mutants of the core, and write the page.

    A mutant with a result of the present sources is not hunted again, so an interrupted run
    continues where it stopped.

    \b
    Exit codes: 0 every mutant of the sample is found or was read; 1 a survivor was not read, or the
    true core was reported; 2 usage error; 4 failed; 130 interrupted.
    """
    if listed:
        for point in points():
            echo(f"{point.id}  {point.mistake.change}")
        return
    chosen = chosen_points(size, seed, place)
    try:
        known = readings(REASONS)
        results = Results(path)
        alarms = false_alarms(list(SUITES)) if core else []
        if not page_only:
            run(chosen, results, threads=threads)
        held_out = {seed: Results(path).by_key.values() for seed, path in HELD_OUT.items()}
        target.write_text(page(results.by_key.values(), known, held_out))
    except (UsageError, BadRecordError) as error:
        echo(f"Error: {error}", err=True)
        sys.exit(2)
    except (BuildError, RuntimeError, OSError) as error:
        echo(f"Failed: {error}", err=True)
        sys.exit(4)
    except KeyboardInterrupt:
        echo(f"Interrupted; {len(results.by_key)} results are in {path}", err=True)
        sys.exit(130)
    tried = list(results.by_key.values())
    if not page_only:  # of today's sources
        tried = [one for point in chosen if (one := results.of(point)) is not None]
    echo(tables(tried, known))
    echo(str(score(tried, known)))
    left = [one for one in tried if not one.found and one.key not in known]
    for one in left:
        echo(f"survivor, not read: {one.name}: {one.change}", err=True)
    for text in alarms:
        echo(text, err=True)
    sys.exit(1 if left or alarms else 0)
