"""The report page: one HTML file that needs no network and no server.

Texts of a run are never markup: the templates escape them, a script inserts the list of violations
as text from JSON, and the page's content security policy forbids any other script.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup

from pulsar_ml import __version__
from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.store.exposure import inside
from pulsar_ml.campaign.store.merge import Group, SuiteTotals
from pulsar_ml.campaign.store.summary import short_number
from pulsar_ml.report import run_history
from pulsar_ml.report.findings import MOST_TEXT, Curve, Findings
from pulsar_ml.report.group import group_data, sentence
from pulsar_ml.report.html import environment, policy, script_of, style_of
from pulsar_ml.report.traces import TraceView
from pulsar_ml.wording import counted

MOST_PLAN = 20_000  # the most characters of a plan
MOST_ROUNDS = 12  # the most columns of rounds; the JSON format has all rounds
MOST_PROGRAMS = 1_000  # the most listed programs of an exhaustive run
MOST_ARMS = 1_000
MOST_DETAILED = 200  # the most signatures with program and environment
CHART = (600, 120)
SPARK = (160, 28)


def render(findings: Findings, views: Sequence[TraceView], *, made_at: datetime) -> str:
    """The page about a run; ``views`` belong to the groups of violations, in order."""
    groups = findings.summary.in_order()
    style = style_of("colours", "page", "lanes", "history")
    script = script_of("history", "lanes", "page")
    sentences_of_groups = [sentence(*pair) for pair in zip(groups, views, strict=True)]
    return (
        environment()
        .get_template("page.html")
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=policy(style, script),
            run=findings.run.facts,
            plan=json.dumps(findings.run.facts["plan"], indent=2)[:MOST_PLAN],
            versions=sorted(findings.run.facts["versions"].items())[:50],
            headline=headline(findings),
            verdict="known" if findings.known_only else findings.verdict,
            sentences=sentences(findings),
            notes=notes(findings),
            suites=[
                suite_row(findings, name, totals)
                for name, totals in sorted(findings.summary.suites.items())
            ],
            controlled=findings.controlled,
            rate=chart(findings.rate.points(), CHART),
            rates=findings.rate.points(),
            yields=[yield_row(key, findings) for key in sorted(findings.yields)],
            kill_table=findings.kill_table,
            rounds=round_rows(findings),
            searched=list(findings.searched.items())[:MOST_PROGRAMS],
            programs=len(findings.searched),
            last_rounds=range(len(findings.rounds))[-MOST_ROUNDS:],
            cells=findings.kill_cells,
            missed=frozenset(findings.kill_cells.missed if findings.kill_cells else ()),
            blamed=frozenset(findings.kill_cells.blamed if findings.kill_cells else ()),
            history=run_history.page_data(findings.history),
            data=[
                group_data(findings, *each, detailed=number < MOST_DETAILED)
                for number, each in enumerate(zip(groups, views, sentences_of_groups, strict=True))
            ],
            title=title(groups, sentences_of_groups),
            source=findings.source,
            violations=findings.summary.violations + findings.dropped,
            made_at=f"{made_at:%Y-%m-%d %H:%M} UTC",
            version=__version__,
            number=short_number,
        )
    )


def title(groups: Sequence[Group], sentences_of_groups: Sequence[str]) -> str:
    """The sentence about the most frequent signature; "" without violations."""
    pairs = zip(groups, sentences_of_groups, strict=True)
    return max(pairs, key=lambda pair: pair[0].count, default=(None, ""))[1]


def headline(findings: Findings) -> str:
    summary = findings.summary
    if findings.source and len(summary.groups) == 1:
        (group,) = summary.groups.values()
        return f"{group.invariant[:MOST_TEXT]} in {group.suite[:MOST_TEXT]}"
    if findings.source:
        return f"{counted(len(summary.groups), 'failure')} in {findings.source}"
    if not summary.trials and findings.kill_table:
        rows = findings.kill_table
        wrong = sum(not row["as_expected"] for row in rows)
        sweeps = f"{counted(len(rows), 'sweep')} over mutants and the true core"
        return f"{sweeps}, {wrong or 'none'} not as expected"
    counts = summary.counts
    ran = f"{counted(summary.trials, 'trial')} ({counts.trials_text()})"
    if findings.controlled:
        ran += f" with {counts.executions_text()}"
    if counts.judged:
        ran += f", {counts.histories_text()}"
    match findings.verdict:
        case "violation":
            count = counted(summary.violations + findings.dropped, "violation")
            count += ", all known," * findings.known_only
            return f"{count} with {counted(len(summary.groups), 'signature')} in {ran}"
        case "nothing_exercised":
            idle = ", ".join(summary.idle_suites) or "any suite"
            return f"Nothing was exercised by {idle}, so the run proves nothing: {ran}"
    return f"No violation in {ran}"


def sentences(findings: Findings) -> list[str]:
    """Sentences about the residual risk."""
    suites = findings.summary.suites
    risks = {
        name: risk for name, totals in suites.items() if (risk := totals.residual_risk) is not None
    }
    lines = []
    if risks:
        worst = max(risks, key=lambda name: (risks[name], name))
        others = f" ({worst}, the suite with the fewest executions)" if len(suites) > 1 else ""
        lines.append(
            "Residual risk: with 95 % confidence a failure of an execution like these is rarer "
            f"than 1 in {1 / risks[worst]:,.0f}{others}. No number of executions shows behaviour "
            "that the memory model leaves out (load buffering)."
        )
    if any(not totals.executions for totals in suites.values()):
        lines.append(
            "Trials on real threads have no figure for the residual risk: "
            "their schedules are not known."
        )
    failed = sorted(name for name, totals in suites.items() if totals.violation)
    if failed:
        lines.append(f"Failed suites have no figure for the residual risk: {', '.join(failed)}.")
    return lines


def notes(findings: Findings) -> list[str]:
    """Notes about problems of the run itself, and about rows that the page leaves out."""
    facts = findings.run.facts
    lines = []
    if facts["status"] in ("interrupted", "failed"):
        lines.append(f"The run did not finish: it was {facts['status']}. Earlier results count.")
    elif facts["status"] == "running":
        lines.append("The run has not finished, or its process was killed.")
    if findings.baseline is not None:
        lines.append(findings.baseline.sentence(findings.summary.groups))
    lines += [facts["problem"]] if facts["problem"] else []
    lines += [str(failure)[:MOST_TEXT] for failure in facts["failures"][:50]]
    lines += [str(warning)[:MOST_TEXT] for warning in facts["warnings"][:50]]
    if findings.dropped:
        count = counted(findings.dropped, "violation")
        lines.append(
            f"{count} beyond the page's limit of signatures are in the Parquet files only."
        )
    listed = sum(map(len, findings.members.values()))
    if not findings.source and listed < findings.summary.violations:
        lines.append(
            f"{listed:,} violations are listed one by one; the Parquet files have all violations."
        )
    return lines


def suite_row(findings: Findings, name: str, totals: SuiteTotals) -> dict[str, Any]:
    curve = findings.curves.get(name)
    recent = curve.recent_rate() if curve else None
    return {
        "name": name,
        "totals": totals,
        "risk": totals.residual_risk,
        "cut": totals.cut / totals.executions if totals.executions else None,
        "recent": None if recent is None else f"{1000 * recent:,.1f}",
        "exhausted": "; ".join(
            f"{words}: {count:,}"
            for (suite, words), count in sorted(findings.exhausted.items())
            if suite == name
        ),
        "curve": spark(curve) if curve else "",
        "inside": inside(totals),
        "per_second": totals.operations / (totals.busy_us / 1e6) if totals.busy_us else 0.0,
    }


def yield_row(key: tuple[str, str, str], findings: Findings) -> dict[str, Any]:
    total = findings.yields[key]
    engine, mode, strategy = key
    seconds = total.busy_us / 1e6
    return {
        "name": " ".join(part for part in (strategy or engine, mode) if part),
        "total": total,
        "rate": total.executions / seconds if seconds else 0.0,
        "classes": 1000 * total.classes / total.executions if total.executions else None,
        "violating": 1000 * total.violating / total.trials if total.trials else None,
    }


def round_rows(findings: Findings) -> list[dict[str, Any]]:
    """A row for each arm: its trials in the last rounds, and its totals over all rounds."""
    rows = []
    for arm in sorted({arm for gained in findings.rounds for arm in gained})[:MOST_ARMS]:
        mine = [gained.get(arm, Gain()) for gained in findings.rounds]
        trials = sum(gain.trials for gain in mine)
        classes = sum(gain.classes for gain in mine)
        rows.append(
            {
                "name": str(arm),
                "trials": [gain.trials for gain in mine[-MOST_ROUNDS:]],
                "violations": sum(gain.violations for gain in mine),
                "signatures": sum(gain.signatures for gain in mine),
                "classes": classes / trials if trials and findings.controlled else None,
            }
        )
    return rows


def spark(curve: Curve) -> str:
    return chart([(float(x), float(y)) for x, y in curve.points], SPARK)


def chart(points: Sequence[tuple[float, float]], size: tuple[int, int]) -> str:
    """The points of an SVG polyline that fills ``size``; both axes begin at 0."""
    width, height = size
    right, top = (
        max((x for x, _ in points), default=0) or 1,
        max((y for _, y in points), default=0) or 1,
    )
    return " ".join(f"{x / right * width:.1f},{height - y / top * height:.1f}" for x, y in points)
