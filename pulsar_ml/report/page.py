"""The report page: one HTML file that needs no network and no server.

Texts of a run are never markup: the templates escape them, a script inserts the list of violations
as text from JSON, and the page's content security policy forbids any other script.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pulsar_ml import __version__
from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.store.merge import Group, SuiteTotals
from pulsar_ml.campaign.store.summary import short_number
from pulsar_ml.harness.search.timeline import Timeline
from pulsar_ml.report import run_history
from pulsar_ml.report.findings import MOST_TEXT, Curve, Findings
from pulsar_ml.report.traces import TraceView
from pulsar_ml.wording import counted

TEMPLATES = Path(__file__).parent / "templates"
STYLES = ("colours", "timeline")  # the style sheets of every drawing
ROW, TOP, LEFT = 22, 44, 18  # pixels: the height of a row and the margins of a drawing
CHARACTER = 7.3  # pixels: the width of a character in a drawing
MOST_PLAN = 20_000  # the most characters of a plan
MOST_ROUNDS = 12  # the most columns of rounds; the JSON format has all rounds
MOST_PROGRAMS = 1_000  # the most listed programs of an exhaustive run
MOST_ARMS = 1_000
MOST_CHARACTERS = 84  # the most characters of a step that widen its lane
CHART = (600, 120)
LABEL = "The interleaving, which is also below as text"
SPARK = (160, 28)


def render(findings: Findings, views: Sequence[TraceView], *, made_at: datetime) -> str:
    """The page about a run; ``views`` belong to the groups of violations, in order."""
    groups = findings.summary.in_order()
    style, script = style_of(*STYLES, "page"), (TEMPLATES / "page.js").read_text()
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
            verdict=findings.verdict,
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
            drawings=[
                {
                    "signature": group.signature,
                    "label": LABEL,
                    "style": "",
                    **drawing(view.timeline),
                }
                for group, view in zip(groups, views, strict=True)
                if view.timeline is not None
            ],
            history=run_history.page_data(findings.history),
            data=[
                group_data(findings, group, view) for group, view in zip(groups, views, strict=True)
            ],
            violations=findings.summary.violations + findings.dropped,
            made_at=f"{made_at:%Y-%m-%d %H:%M} UTC",
            version=__version__,
            number=short_number,
        )
    )


def environment() -> jinja2.Environment:
    """The environment of the templates, which escape every text of a run."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style_of(*names: str) -> str:
    """Style sheets of the templates, joined."""
    return "".join((TEMPLATES / f"{name}.css").read_text() for name in names)


def policy(style: str, script: str) -> str:
    """The content security policy: the page's own style and script, and nothing else."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def headline(findings: Findings) -> str:
    summary = findings.summary
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
    if listed < findings.summary.violations:
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


def group_data(findings: Findings, group: Group, view: TraceView) -> dict[str, Any]:
    """The data of a group for the page's script."""
    members = findings.members.get(group.signature, [])
    shared = group.message[:MOST_TEXT]
    return {
        "signature": group.signature,
        "suite": group.suite,
        "invariant": group.invariant,
        "count": group.count,
        "seed": str(group.seed),  # JavaScript cannot represent 64-bit integers
        "phase": group.phase,
        "message": shared,
        "mark": findings.baseline.status(group.signature) if findings.baseline else "",
        "command": findings.command(group),
        "lines": [
            line.removeprefix("  ")[:MOST_TEXT]
            for line in (
                *sizes_before_and_after(findings, group),
                *view.lines,
                *signature_line(findings, group),
            )
        ],
        "note": view.note[:MOST_TEXT],
        "lanes": view.lanes,
        "curve": view.curve,
        "members": [
            [
                str(member.seed),
                "" if member.message == shared else member.message,
                member.host,
                member.log,
                member.at,
            ]
            for member in members
        ],
    }


def signature_line(findings: Findings, group: Group) -> list[str]:
    """The signature of a group, and the baseline's entry about it."""
    note = findings.baseline.note(group.signature) if findings.baseline else ""
    return [f"signature {group.signature}" + (f", {note}" if note else "")]


def sizes_before_and_after(findings: Findings, group: Group) -> list[str]:
    """A line about the sizes before and after shrinking; none for an unchanged failure."""
    shrunk = findings.shrunk.get(group.signature)
    if shrunk is None or shrunk.before is None or shrunk.after is None:
        return []
    pairs = [
        (noun, getattr(shrunk.before, f"{noun}s"), getattr(shrunk.after, f"{noun}s"))
        for noun in ("thread", "operation", "decision", "step")
    ]
    # For real threads, the numbers of decisions and steps before shrinking are unknown, hence 0.
    sizes = [f"{counted(was, noun)} to {now:,}" for noun, was, now in pairs if was and was != now]
    return [f"shrunk after the run: {', '.join(sizes)}"]


# Drawings -----------------------------------------------------------------------------------------


def drawing(drawn: Timeline) -> dict[str, Any]:
    """The coordinates of an interleaving's lanes, steps and arrows, in pixels."""
    longest = [12] * drawn.lanes
    for step in drawn.steps:
        longest[step.lane] = max(
            longest[step.lane], len(step.text) + 2 + len(step.place) + 2 * bool(step.mark)
        )
    longest = [min(characters, MOST_CHARACTERS) for characters in longest]
    lefts = [LEFT]
    for characters in longest:
        lefts.append(round(lefts[-1] + characters * CHARACTER + 44))
    boxes = [round(characters * CHARACTER) + 30 for characters in longest]
    y = [TOP + ROW * row for row in range(len(drawn.steps))]
    height = TOP + ROW * len(drawn.steps) + 4
    return {
        "width": lefts[-1],
        "height": height,
        "lanes": [{"number": lane, "x": x} for lane, x in enumerate(lefts[:-1])],
        "steps": [
            {"x": lefts[step.lane], "y": y[row], "step": step, "width": boxes[step.lane]}
            for row, step in enumerate(drawn.steps)
        ],
        "arrows": [
            {
                "kind": "before" if arrow.kind == "happens before" else "reads",
                "path": curve_between(
                    lefts[drawn.steps[arrow.start].lane], y[arrow.start],
                    lefts[drawn.steps[arrow.end].lane], y[arrow.end],
                ),
            }
            for arrow in drawn.arrows
        ],
        "marked": [step for step in drawn.steps if step.mark and step.mark != "stale"],
    }  # fmt: skip


def curve_between(x1: int, y1: int, x2: int, y2: int) -> str:
    """The SVG path of an arrow that leaves downwards and arrives from above, beside the texts."""
    if x1 == x2:
        return f"M{x1 - 5},{y1} C{x1 - 16},{y1} {x1 - 16},{y2} {x1 - 6},{y2}"
    side = 7 if x2 < x1 else -7
    return f"M{x1},{y1 + 5} C{x1},{y1 + 26} {x2 + 5 * side},{y2 - 26} {x2 + side},{y2 - 3}"


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
