"""What a run prints at its end: tables for people, one JSON object for programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pulsar_ml.campaign.local.session import (
    EXIT_CLEAN,
    EXIT_INTERRUPTED,
    EXIT_NOTHING_EXERCISED,
    EXIT_VIOLATION,
    Tally,
)
from pulsar_ml.campaign.local.watch import MEGABYTE
from pulsar_ml.campaign.trial.suite import Suite

VERDICTS = {
    EXIT_CLEAN: "clean: nothing was violated",
    EXIT_VIOLATION: "VIOLATION",
    EXIT_NOTHING_EXERCISED: "nothing exercised: no two operations were seen to overlap",
    EXIT_INTERRUPTED: "interrupted: what was found so far is above",
}


def replay_command(record: Path, foreign: str | None) -> str:
    """What to type to run a record again."""
    words = [
        "python",
        "-m",
        "stress",
        *(["--suites", foreign] if foreign else []),
        "replay",
        str(record),
    ]
    return shlex.join(words)


def print_suites(console: Console, suites: Mapping[str, Suite]) -> None:
    table = Table(
        "suite", "threads", "operations", "invariants", "what it does", box=None, pad_edge=False
    )
    for suite in suites.values():
        ids = ", ".join(suite.invariants)
        table.add_row(
            suite.name, str(suite.threads), str(suite.operations), ids, escape(suite.summary)
        )
    console.print(table)


def suites_as_data(suites: Mapping[str, Suite]) -> list[dict[str, Any]]:
    return [
        {
            "name": suite.name,
            "subject": suite.subject,
            "summary": suite.summary,
            "threads": suite.threads,
            "operations": suite.operations,
            "mix": dict(suite.mix),
            "settings": {name: list(limits) for name, limits in suite.settings.items()},
            "invariants": dict(suite.invariants),
        }
        for suite in suites.values()
    ]


def print_tally(console: Console, tally: Tally, foreign: str | None) -> None:
    """The summary of one suite."""
    console.print(facts(tally))
    if tally.possible:
        console.print()
        console.print(coverage(tally))
        missing = [pair for pair in tally.possible if not tally.pairs[pair]]
        console.print(coverage_line(tally, missing), highlight=False)
    for failure in tally.failures:
        console.print()
        for violation in failure.violations:
            console.print(
                f"[bold red]{escape(violation.invariant)}[/] ({violation.phase}) at seed {failure.seed}: "
                f"{escape(violation.message)}",
                highlight=False,
                soft_wrap=True,
            )
        console.print(
            f"    {escape(replay_command(failure.record, foreign))}",
            highlight=False,
            soft_wrap=True,
        )


def facts(tally: Tally) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    seeds = (
        f"{tally.first_seed}..{tally.first_seed + tally.programs - 1}" if tally.programs else "none"
    )
    native = tally.native_ns / 1e9
    rate = f"{tally.operations / native:,.0f}/s while threads ran" if native else "none"
    table.add_row("suite", f"{tally.suite} on build {tally.build_id}, {tally.threads} threads")
    table.add_row("programs", f"{tally.programs:,} in {tally.elapsed:.1f} s, seeds {seeds}")
    table.add_row("operations", f"{tally.operations:,}, {rate}, {tally.overlaps:,} overlaps seen")
    if tally.nothing_exercised:
        table.add_row("", f"{tally.nothing_exercised:,} programs saw no overlap")
    if tally.judged:
        unknown = f", {tally.unknown:,} of them too long to tell" if tally.unknown else ""
        table.add_row(
            "answers", f"{tally.judged:,} recorded histories compared with the model{unknown}"
        )
    if tally.usage is not None:
        use = tally.usage
        growth = "" if tally.memory_judged else ", growth not judged"
        table.add_row(
            "CPU",
            f"{use.cpu_percent:.0f} % of one processor, up to {use.threads_peak} threads seen",
        )
        table.add_row(
            "memory",
            f"{use.resident / MEGABYTE:.0f} MB resident, "
            f"at most {use.resident_peak / MEGABYTE:.0f} MB{growth}",
        )
        table.add_row(
            "switches",
            f"{use.switches_voluntary:,} voluntary, {use.switches_involuntary:,} involuntary",
        )
    return table


def coverage(tally: Tally) -> Table:
    """A triangle of operation pairs: how often each was seen to overlap; a dash cannot overlap.

    Columns have numbers instead of names, so that many operations fit on a narrow terminal.
    """
    names = list(dict.fromkeys(name for pair in tally.possible for name in pair))
    table = Table("", "overlaps", box=None, pad_edge=False)
    for number in range(len(names)):
        table.add_column(str(number + 1), justify="right")
    for row, first in enumerate(names):
        cells = [
            "" if column < row else cell(tally, first, names[column])
            for column in range(len(names))
        ]
        table.add_row(str(row + 1), first, *cells)
    return table


def cell(tally: Tally, first: str, second: str) -> str:
    if (first, second) in tally.possible:
        return compact(tally.pairs[first, second])
    if (second, first) in tally.possible:
        return compact(tally.pairs[second, first])
    return "-"


def compact(count: int) -> str:
    """At most four characters or so."""
    if count < 10_000:
        return str(count)
    if count < 10_000_000:
        return f"{count // 1000}k"
    return f"{count // 1_000_000}M"


def coverage_line(tally: Tally, missing: list[tuple[str, str]]) -> str:
    seen = len(tally.possible) - len(missing)
    line = f"{seen} of {len(tally.possible)} possible pairs of operations were seen to overlap"
    if missing and seen:
        line += "; never: " + ", ".join(f"{first} with {second}" for first, second in missing)
    return line


def tally_as_data(tally: Tally, foreign: str | None) -> dict[str, Any]:
    use = tally.usage
    return {
        "suite": tally.suite,
        "build_id": tally.build_id,
        "threads": tally.threads,
        "first_seed": tally.first_seed,
        "programs": tally.programs,
        "operations": tally.operations,
        "operations_per_second": tally.operations / (tally.native_ns / 1e9)
        if tally.native_ns
        else 0.0,
        "elapsed_seconds": tally.elapsed,
        "overlaps": tally.overlaps,
        "nothing_exercised": tally.nothing_exercised,
        "judged": tally.judged,
        "unknown": tally.unknown,
        "pairs_possible": len(tally.possible),
        "pairs": [
            {"first": first, "second": second, "count": tally.pairs[first, second]}
            for first, second in tally.possible
        ],
        "interrupted": tally.interrupted,
        "memory_judged": tally.memory_judged,
        "usage": None
        if use is None
        else {name: getattr(use, name) for name in type(use).__slots__},
        "failures": [
            {
                "seed": failure.seed,
                "record": str(failure.record),
                "replay": replay_command(failure.record, foreign),
                "violations": [
                    {"invariant": seen.invariant, "message": seen.message, "phase": seen.phase}
                    for seen in failure.violations
                ],
            }
            for failure in tally.failures
        ],
        "exit_code": tally.exit_code(),
    }
