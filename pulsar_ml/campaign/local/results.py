"""The printed result of a run on real threads: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pulsar_ml.campaign.local.session import SuiteRun
from pulsar_ml.campaign.local.watch import MEGABYTE
from pulsar_ml.campaign.store.counts import ProofCounts
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.exit_codes import CLEAN, INTERRUPTED, NOTHING_EXERCISED, VIOLATION, ExitCode
from pulsar_ml.terminal.command_line import replay_command
from pulsar_ml.terminal.tables import print_table

KNOWN_ONLY = "known failures only: nothing new was violated"
VERDICTS = {
    CLEAN: "clean: nothing was violated",
    VIOLATION: "VIOLATION",
    NOTHING_EXERCISED: "nothing exercised by {}: no two threads of {} programs were seen to meet",
    INTERRUPTED: "interrupted: the results so far are above",
}


def counts_of(runs: Sequence[SuiteRun]) -> ProofCounts:
    return ProofCounts(
        trials=sum(run.programs for run in runs),
        idle=sum(run.nothing_exercised for run in runs),
        judged=sum(run.judged for run in runs),
        unknown=sum(run.unknown for run in runs),
        noun="program",
    )


def verdict(
    code: ExitCode, counts: ProofCounts, idle: Sequence[str], *, known: bool = False
) -> str:
    """The last line of a run or an exploration: the verdict, and how much it proves.

    ``idle`` has the names of the suites that exercised nothing; ``known`` says that there were
    failures that a baseline knows.
    """
    parts = [f"{counts.trials:,} {counts.noun}s ({counts.trials_text()})"]
    if counts.executions:
        parts.append(counts.executions_text())
    if counts.judged:
        parts.append(counts.histories_text())
    found = KNOWN_ONLY if known and code == CLEAN else VERDICTS[code]
    found = found.format(", ".join(idle), "its" if len(idle) == 1 else "their")
    return f"{found}; {', '.join(parts)}"


def print_suites(console: Console, suites: Mapping[str, Suite]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("suite", no_wrap=True)
    for name in ("threads", "operations"):
        table.add_column(name, justify="right")
    table.add_column("invariants", overflow="fold")
    table.add_column("summary", overflow="fold")
    for suite in suites.values():
        ids = ", ".join(suite.invariants)
        table.add_row(
            suite.name, str(suite.threads), str(suite.operations), ids, escape(suite.summary)
        )
    print_table(console, table, ("operations", "threads", "invariants"))


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


def print_run(console: Console, run: SuiteRun, suites: str | None) -> None:
    """The summary of one suite."""
    console.print(facts(run))
    if run.possible:
        console.print()
        console.print(coverage(run))
        missing = [pair for pair in run.possible if not run.pairs[pair]]
        console.print(coverage_line(run, missing), highlight=False)
    for failure in run.failures:
        console.print()
        for violation in failure.violations:
            console.print(
                f"[bold red]{escape(violation.invariant)}[/] ({violation.phase}) "
                f"at seed {failure.seed}: {escape(violation.message)}",
                highlight=False,
                soft_wrap=True,
            )
        console.print(
            f"    {escape(replay_command(failure.record, suites, run.module))}",
            highlight=False,
            soft_wrap=True,
        )


def facts(run: SuiteRun) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    seeds = f"{run.first_seed}..{run.first_seed + run.programs - 1}" if run.programs else "none"
    native = run.native_ns / 1e9
    rate = f"{run.operations / native:,.0f}/s while threads ran" if native else "none"
    table.add_row("suite", f"{run.suite} on build {run.build_id}, {run.threads} threads")
    table.add_row("programs", f"{run.programs:,} in {run.elapsed:.1f} s, seeds {seeds}")
    table.add_row("operations", f"{run.operations:,}, {rate}, {run.overlaps:,} overlaps seen")
    if run.nothing_exercised:
        table.add_row("", f"{run.nothing_exercised:,} programs saw no overlap")
    if run.judged:
        unknown = f", {run.unknown:,} of them too long to tell" if run.unknown else ""
        table.add_row(
            "answers", f"{run.judged:,} recorded histories compared with the model{unknown}"
        )
    if run.usage is not None:
        use = run.usage
        growth = "" if run.memory_judged else ", growth not judged"
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


def coverage(run: SuiteRun) -> Table:
    """A triangle of operation pairs: the overlaps seen of each; a dash marks impossible pairs.

    Columns have numbers instead of names, so that many operations fit on a narrow terminal.
    """
    names = list(dict.fromkeys(name for pair in run.possible for name in pair))
    table = Table("", "overlaps", box=None, pad_edge=False)
    for number in range(len(names)):
        table.add_column(str(number + 1), justify="right")
    for row, first in enumerate(names):
        cells = [
            "" if column < row else cell(run, first, names[column]) for column in range(len(names))
        ]
        table.add_row(str(row + 1), first, *cells)
    return table


def cell(run: SuiteRun, first: str, second: str) -> str:
    if (first, second) in run.possible:
        return compact(run.pairs[first, second])
    if (second, first) in run.possible:
        return compact(run.pairs[second, first])
    return "-"


def compact(count: int) -> str:
    """At most four characters or so."""
    if count < 10_000:
        return str(count)
    if count < 10_000_000:
        return f"{count // 1000}k"
    return f"{count // 1_000_000}M"


def coverage_line(run: SuiteRun, missing: list[tuple[str, str]]) -> str:
    seen = len(run.possible) - len(missing)
    line = f"{seen} of {len(run.possible)} possible pairs of operations were seen to overlap"
    if missing and seen:
        line += "; never: " + ", ".join(f"{first} with {second}" for first, second in missing)
    return line


def run_as_data(run: SuiteRun, suites: str | None) -> dict[str, Any]:
    use = run.usage
    return {
        "suite": run.suite,
        "build_id": run.build_id,
        "threads": run.threads,
        "first_seed": run.first_seed,
        "programs": run.programs,
        "operations": run.operations,
        "operations_per_second": run.operations / (run.native_ns / 1e9) if run.native_ns else 0.0,
        "elapsed_seconds": run.elapsed,
        "overlaps": run.overlaps,
        "nothing_exercised": run.nothing_exercised,
        "judged": run.judged,
        "unknown": run.unknown,
        "pairs_possible": len(run.possible),
        "pairs": [
            {"first": first, "second": second, "count": run.pairs[first, second]}
            for first, second in run.possible
        ],
        "interrupted": run.interrupted,
        "memory_judged": run.memory_judged,
        "usage": None
        if use is None
        else {name: getattr(use, name) for name in type(use).__slots__},
        "known": dict(run.known),
        "failures": [
            {
                "seed": failure.seed,
                "record": str(failure.record),
                "replay": replay_command(failure.record, suites, run.module),
                "violations": [
                    {"invariant": seen.invariant, "message": seen.message, "phase": seen.phase}
                    for seen in failure.violations
                ],
            }
            for failure in run.failures
        ],
        "exit_code": run.exit_code(),
    }
