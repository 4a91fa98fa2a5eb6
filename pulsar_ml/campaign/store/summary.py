"""The summary of a campaign as tables for the terminal and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.plan.rounds import Arm
from pulsar_ml.campaign.store.exposure import inside
from pulsar_ml.campaign.store.merge import Group, SuiteTotals, Summary
from pulsar_ml.terminal.tables import print_table

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Program, Searched

SHOWN_GROUPS = 50  # the files hold all groups
SHOWN_ROUNDS = 8  # only the last rounds are shown
# Columns of the table of suites that a narrow terminal does without, the first one first.
OPTIONAL = (
    "Cut", "Steps/s", "Ops/s", "Inside", "Runs", "Unseen", "Pairs", "Unknown", "Operations",
    "Risk below", "Overlaps", "Per s", "Judged",
)  # fmt: skip

ReplayCommand = Callable[[Group], str]


def print_summary(console: Console, summary: Summary, replay: ReplayCommand) -> None:
    """Print totals by suite, then violations by signature, each with its replay command."""
    if summary.suites:
        table = controlled_table(summary) if summary.executions else suites_table(summary)
        print_table(console, table, OPTIONAL)
    if not summary.groups:
        return
    groups = summary.in_order()
    print_table(console, violations_table(groups[:SHOWN_GROUPS]), ("Phase",))
    exactly = "step by step" if summary.executions else "real threads: it may take several tries"
    console.print(f"Replay the smallest seed of each ({exactly}):")
    for group in groups[:SHOWN_GROUPS]:
        # Not in the table, because a wrapped command cannot be copied.
        console.print(f"  {replay(group)}", soft_wrap=True, highlight=False, markup=False)
    if len(groups) > SHOWN_GROUPS:
        console.print(
            f"and {len(groups) - SHOWN_GROUPS:,} more signatures in the results directory"
        )


def suites_table(summary: Summary) -> Table:
    table = Table(title="Suites", title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True)
    table.add_column("Suite", no_wrap=True)
    for name in (
        "Trials",
        "Viola-\nting",
        "Nothing\nexer-\ncised",
        "Runs",
        "Operations",
        "Overlaps",
        "Pairs",
        "Ops/s",
        "Inside",
    ):
        table.add_column(name, justify="right")
    add_answers(table)
    for name, totals in sorted(summary.suites.items()):
        share = inside(totals)
        rate = totals.operations / (totals.busy_us / 1e6) if totals.busy_us else 0
        counts = (totals.trials, totals.violation, totals.nothing_exercised)
        table.add_row(
            Text(name),
            *(f"{count:,}" for count in counts),
            *map(short_number, (totals.runs, totals.operations, totals.overlaps)),
            met(totals),
            short_number(rate),
            "-" if share is None else f"{share:.0%}",
            *answers(totals),
        )
    return table


def controlled_table(summary: Summary) -> Table:
    """Make the table of totals under the engine; only suites without a failure have a risk."""
    table = Table(
        title="Suites under the engine",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
    )
    table.add_column("Suite", no_wrap=True)
    broken = ("Viola-\nting", "Nothing\nexer-\ncised", "Execu-\ntions")  # so that numbers have room
    for name in ("Trials", *broken, "Per s", "Steps/s", "Classes"):
        table.add_column(name, justify="right")
    for name in ("Unseen", "Cut", "Risk below"):
        table.add_column(name, justify="right")
    add_answers(table)
    searched = any(totals.exhausted for totals in summary.suites.values())
    if searched:
        table.add_column("Exhausted", justify="right")
    for name, totals in sorted(summary.suites.items()):
        seconds = totals.busy_us / 1e6
        rates = (totals.executions / seconds, totals.steps / seconds) if seconds else (0.0, 0.0)
        counts = (totals.trials, totals.violation, totals.nothing_exercised)
        risk, unseen = totals.residual_risk, totals.unseen_mass
        table.add_row(
            Text(name),
            *(f"{count:,}" for count in counts),
            *map(short_number, (totals.executions, *rates)),
            met(totals),
            "-" if unseen is None else f"{unseen:.2%}",
            f"{totals.cut / totals.executions:.2%}" if totals.executions else "-",
            "-" if risk is None else f"{risk:.1e}",
            *answers(totals),
            *([f"{totals.exhausted:,}"] if searched else []),
        )
    return table


def met(totals: SuiteTotals) -> str:
    """Return the number of distinct classes or pairs, or a dash if it is unknown."""
    return "-" if totals.distinct is None else short_number(totals.distinct)


def add_answers(table: Table) -> None:
    for name in ("Judged", "Unknown"):
        table.add_column(name, justify="right")


def answers(totals: SuiteTotals) -> tuple[str, str]:
    """Return the numbers of judged and unknown histories; dashes without a model."""
    if not totals.judged:
        return "-", "-"
    return short_number(totals.judged), f"{totals.unknown:,}"


def violations_table(groups: list[Group]) -> Table:
    table = Table(title="Violations by signature", title_justify="left")
    table.add_column("Suite", overflow="fold")
    table.add_column("Invariant", overflow="fold")
    table.add_column("Count", justify="right", no_wrap=True)
    table.add_column("Smallest\nseed", justify="right", no_wrap=True)
    table.add_column("Phase", no_wrap=True)
    table.add_column("Message at that seed", overflow="fold", min_width=20)
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


def rounds_table(gains: Sequence[Mapping[Arm, Gain]]) -> Table:
    """Make the table of rounds: for each arm its trials in each round and its total gain."""
    table = Table(title="Rounds", title_justify="left")
    table.add_column("Suite")
    controlled = any(arm.strategy for arm in gains[0])
    if controlled:
        table.add_column("Strategy")
    first = max(0, len(gains) - SHOWN_ROUNDS)
    for number in range(first, len(gains)):
        table.add_column(
            f"Trials {number + 1}" if number == first else f"{number + 1}", justify="right"
        )
    for name in ("Violations", "Signatures", *(["Classes", "Per trial"] if controlled else [])):
        table.add_column(name, justify="right")
    for arm in gains[0]:
        mine = [gain.get(arm, Gain()) for gain in gains]
        classes, trials = sum(gain.classes for gain in mine), sum(gain.trials for gain in mine)
        per = [short_number(classes), f"{classes / trials:,.1f}" if trials else "-"]
        table.add_row(
            Text(arm.suite),
            *([Text(arm.strategy)] if controlled else []),
            *(f"{gain.trials:,}" for gain in mine[first:]),
            f"{sum(gain.violations for gain in mine):,}",
            f"{sum(gain.signatures for gain in mine):,}",
            *(per if controlled else []),
        )
    return table


def rounds_data(gains: Sequence[Mapping[Arm, Gain]]) -> list[dict[str, object]]:
    """Return the gains as plain data for ``json``, round by round."""
    return [
        {"round": number, "arms": [{**asdict(arm), **asdict(gain)} for arm, gain in gained.items()]}
        for number, gained in enumerate(gains, 1)
    ]


def search_table(programs: Mapping[Program, Searched]) -> Table:
    """Make the table of searches: for each program the proof, or why there is none."""
    table = Table(title="Searches", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("Suite")
    for name in ("Seed", "Parts", "Executions"):
        table.add_column(name, justify="right")
    table.add_column("Result", overflow="fold")
    for (suite, seed), searched in programs.items():
        row = (str(seed), f"{searched.parts:,}", f"{searched.executions:,}")
        table.add_row(Text(suite), *row, Text(searched.result))
    return table


def search_data(programs: Mapping[Program, Searched]) -> list[dict[str, object]]:
    """Return the searches as plain data for ``json``."""
    return [
        {
            "suite": suite,
            "seed": seed,
            "parts": searched.parts,
            "left": searched.left,
            "executions": searched.executions,
            "exhausted": searched.exhausted,
            "result": searched.result,
        }
        for (suite, seed), searched in programs.items()
    ]


def summary_data(summary: Summary, replay: ReplayCommand) -> dict[str, object]:
    """Return the whole summary as plain data for ``json``, with every signature."""
    return {
        "verdict": summary.verdict,
        "operations": summary.operations,
        **summary.counts.as_data(),
        "warning": summary.counts.warning(),
        "violations": summary.violations,
        "suites": {name: totals_data(totals) for name, totals in sorted(summary.suites.items())},
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


def totals_data(totals: SuiteTotals) -> dict[str, object]:
    content = asdict(totals)
    del content["sketch"]
    return {
        **content,
        "exercised": totals.trials - totals.nothing_exercised,
        "distinct": totals.distinct,
        "unseen_mass": totals.unseen_mass,
        "residual_risk": totals.residual_risk,
    }


def short_number(number: float) -> str:
    """Format a number with three digits and a unit: 999, 12.3 k, 4.56 M."""
    for unit in ("", " k", " M", " G"):
        if number < 999.5:
            digits = 0 if not unit else max(0, 2 - len(str(int(number))) + 1)
            return f"{number:.{digits}f}{unit}"
        number /= 1000
    return f"{number:,.0f} T"
