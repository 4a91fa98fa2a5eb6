"""The summary of a campaign as tables for the terminal and as plain data."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pulsar_ml.campaign.merge import Group, Summary, SuiteTotals

SHOWN_GROUPS = 50  # the files hold all of them

ReplayCommand = Callable[[Group], str]


def print_summary(console: Console, summary: Summary, replay: ReplayCommand) -> None:
    """Totals by suite, then violations by signature with the command that replays each."""
    if summary.suites:
        console.print(controlled_table(summary) if summary.executions else suites_table(summary))
    if not summary.groups:
        return
    groups = summary.in_order()
    console.print(violations_table(groups[:SHOWN_GROUPS]))
    exactly = "step by step" if summary.executions else "real threads: it may take several tries"
    console.print(f"Replay the smallest seed of each ({exactly}):")
    for group in groups[:SHOWN_GROUPS]:
        # Not in the table: a command that wraps cannot be copied.
        console.print(f"  {replay(group)}", soft_wrap=True, highlight=False, markup=False)
    if len(groups) > SHOWN_GROUPS:
        console.print(f"and {len(groups) - SHOWN_GROUPS:,} more signatures in the results directory")


def suites_table(summary: Summary) -> Table:
    table = Table(title="Suites", title_justify="left")
    table.add_column("Suite")
    for name in ("Trials", "Violating", "Nothing exercised", "Operations", "Overlaps", "Ops/s"):
        table.add_column(name, justify="right")
    add_answers(table)
    for name, totals in sorted(summary.suites.items()):
        rate = totals.operations / (totals.busy_us / 1e6) if totals.busy_us else 0
        counts = (totals.trials, totals.violation, totals.nothing_exercised)
        rounded = (totals.operations, totals.overlaps, rate)
        table.add_row(
            Text(name), *(f"{count:,}" for count in counts), *map(short_number, rounded), *answers(totals)
        )
    return table


def controlled_table(summary: Summary) -> Table:
    """Totals of trials under the engine. A risk is told only of a suite in which nothing failed."""
    table = Table(title="Suites under the engine", title_justify="left")
    table.add_column("Suite", no_wrap=True)
    for name in ("Trials", "Violating", "Nothing exercised", "Executions", "Per s", "Steps/s", "Classes"):
        table.add_column(name, justify="right")
    for name in ("Cut", "Risk below"):
        table.add_column(name, justify="right")
    add_answers(table)
    searched = any(totals.exhausted for totals in summary.suites.values())
    if searched:
        table.add_column("Exhausted", justify="right")
    for name, totals in sorted(summary.suites.items()):
        seconds = totals.busy_us / 1e6
        rates = (totals.executions / seconds, totals.steps / seconds) if seconds else (0.0, 0.0)
        counts = (totals.trials, totals.violation, totals.nothing_exercised)
        risk = totals.residual_risk
        table.add_row(
            Text(name),
            *(f"{count:,}" for count in counts),
            *map(short_number, (totals.executions, *rates, totals.classes)),
            f"{totals.cut / totals.executions:.2%}" if totals.executions else "-",
            "-" if risk is None else f"{risk:.1e}",
            *answers(totals),
            *([f"{totals.exhausted:,}"] if searched else []),
        )
    return table


def add_answers(table: Table) -> None:
    for name in ("Judged", "Unknown"):
        table.add_column(name, justify="right")


def answers(totals: SuiteTotals) -> tuple[str, str]:
    """Histories compared with the suite's model, and those that it could not tell; dashes without a model."""
    if not totals.judged:
        return "-", "-"
    return short_number(totals.judged), f"{totals.unknown:,}"


def violations_table(groups: list[Group]) -> Table:
    table = Table(title="Violations by signature", title_justify="left")
    table.add_column("Suite")
    table.add_column("Invariant")
    table.add_column("Count", justify="right")
    table.add_column("Smallest seed", justify="right", no_wrap=True)
    table.add_column("Phase")
    table.add_column("Message at that seed", overflow="fold")
    for group in groups:
        table.add_row(
            Text(group.suite),
            Text(group.invariant),
            f"{group.count:,}",
            str(group.seed),
            group.phase,
            Text(group.message),
        )
    return table


def summary_data(summary: Summary, replay: ReplayCommand) -> dict[str, object]:
    """The same for ``json``; everything is there, whatever the number of signatures."""
    return {
        "verdict": summary.verdict,
        "trials": summary.trials,
        "operations": summary.operations,
        "executions": summary.executions,
        "judged": summary.judged,
        "unknown": summary.unknown,
        "violations": summary.violations,
        "suites": {
            name: {**asdict(totals), "residual_risk": totals.residual_risk}
            for name, totals in sorted(summary.suites.items())
        },
        "signatures": [
            {
                "signature": group.signature,
                "suite": group.suite,
                "invariant": group.invariant,
                "count": group.count,
                "smallest_seed": group.seed,
                "phase": group.phase,
                "message": group.message,
                "replay": replay(group),
            }
            for group in summary.in_order()
        ],
    }


def short_number(number: float) -> str:
    """Three digits and a unit: 999, 12.3 k, 4.56 M."""
    for unit in ("", " k", " M", " G"):
        if number < 999.5:
            digits = 0 if not unit else max(0, 2 - len(str(int(number))) + 1)
            return f"{number:.{digits}f}{unit}"
        number /= 1000
    return f"{number:,.0f} T"


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 signature``, ``2 signatures``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def python_command() -> str:
    """How the user's shell calls this interpreter: ``python`` when that is the one on the PATH."""
    found = shutil.which("python")
    if found and os.path.abspath(found) == os.path.abspath(sys.executable):
        return "python"
    return shlex.quote(short_path(Path(sys.executable)))


def short_path(path: Path) -> str:
    """Relative to the working directory when it lies below it. Links are kept as they are."""
    absolute = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)
