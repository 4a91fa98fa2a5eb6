"""The page: one HTML file that needs nothing else, neither a network nor a server.

What a run says is data, never markup: templates escape it, the list of violations is JSON that a script puts
in place as text, and the page's own policy lets no other script run.
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

from pulsar_ml.campaign.plan.allocation import Gain
from pulsar_ml.campaign.store.merge import Group, SuiteTotals
from pulsar_ml.campaign.store.summary import counted, short_number
from pulsar_ml.harness.search.timeline import Timeline
from pulsar_ml.report.findings import MOST_TEXT, Curve, Findings
from pulsar_ml.report.traces import Shown

TEMPLATES = Path(__file__).parent / "templates"
ROW, TOP, LEFT = 22, 44, 18  # of a drawing, in pixels
CHARACTER = 7.3  # the width of one at the size of a drawing's text
MOST_PLAN = 20_000  # characters
MOST_ROUNDS = 12  # columns; the JSON has all
MOST_PROGRAMS = 1_000  # listed of a search to the end
MOST_ARMS = 1_000
MOST_CHARACTERS = 84  # of a step
CHART = (600, 120)
SPARK = (160, 28)


def render(found: Findings, shown: Sequence[Shown], *, made_at: datetime, version: str) -> str:
    """The page about a run; ``shown`` are the records of the groups, in order."""
    groups = found.summary.in_order()
    style, script = (TEMPLATES / "page.css").read_text(), (TEMPLATES / "page.js").read_text()
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
        run=found.run.facts,
        plan=json.dumps(found.run.facts["plan"], indent=2)[:MOST_PLAN],
        versions=sorted(found.run.facts["versions"].items())[:50],
        headline=headline(found),
        verdict=found.verdict,
        sentences=sentences(found),
        notes=notes(found),
        suites=[
            suite_row(found, name, totals) for name, totals in sorted(found.summary.suites.items())
        ],
        controlled=found.controlled,
        rate=chart(found.rate.points(), CHART),
        rates=found.rate.points(),
        yields=[yield_row(key, found) for key in sorted(found.yields)],
        kill_table=found.kill_table,
        rounds=round_rows(found),
        searched=list(found.searched.items())[:MOST_PROGRAMS],
        programs=len(found.searched),
        last_rounds=range(len(found.rounds))[-MOST_ROUNDS:],
        cells=found.kill_cells,
        missed=frozenset(found.kill_cells.missed if found.kill_cells else ()),
        blamed=frozenset(found.kill_cells.blamed if found.kill_cells else ()),
        drawings=[
            {"signature": group.signature, **drawing(what.timeline)}
            for group, what in zip(groups, shown, strict=True)
            if what.timeline is not None
        ],
        data=[group_data(found, group, what) for group, what in zip(groups, shown, strict=True)],
        violations=found.summary.violations + found.dropped,
        made_at=f"{made_at:%Y-%m-%d %H:%M} UTC",
        version=version,
        number=short_number,
    )


def policy(style: str, script: str) -> str:
    """What the page may do: its own style and script, nothing from anywhere else."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def headline(found: Findings) -> str:
    summary = found.summary
    if not summary.trials and found.kill_table:
        rows = found.kill_table
        wrong = sum(not row["as_expected"] for row in rows)
        return f"{counted(len(rows), 'sweep')} over mutants and the true core, {wrong or 'none'} not as expected"
    ran = counted(summary.trials, "trial")
    if found.controlled:
        ran += f" with {counted(summary.executions, 'execution')}"
    match found.verdict:
        case "violation":
            count = counted(summary.violations + found.dropped, "violation")
            return f"{count} with {counted(len(summary.groups), 'signature')} in {ran}"
        case "nothing_exercised":
            idle = ", ".join(summary.idle_suites) or "any suite"
            return f"Nothing was exercised by {idle}, which proves nothing ({ran})"
    return f"No violation in {ran}"


def sentences(found: Findings) -> list[str]:
    """What the verdict means: the risk that is left."""
    suites = found.summary.suites
    risks = {
        name: risk for name, totals in suites.items() if (risk := totals.residual_risk) is not None
    }
    told = []
    if risks:
        worst = max(risks, key=lambda name: (risks[name], name))
        others = f" ({worst}, the suite with the fewest executions)" if len(suites) > 1 else ""
        told.append(
            f"Residual risk: with 95 % confidence a failure of an execution like those made is rarer than "
            f"1 in {1 / risks[worst]:,.0f}{others}. What the memory model leaves out (load buffering) no "
            "number of executions shows."
        )
    if any(not totals.executions for totals in suites.values()):
        told.append(
            "Trials on real threads have no figure for the residual risk: which schedules happened is not "
            "known."
        )
    failed = sorted(name for name, totals in suites.items() if totals.violation)
    if failed:
        told.append(f"No residual risk is given for what failed: {', '.join(failed)}.")
    return told


def notes(found: Findings) -> list[str]:
    """What went wrong with the run itself, and what the page leaves out."""
    facts = found.run.facts
    told = []
    if facts["status"] in ("interrupted", "failed"):
        told.append(f"The run did not finish: it was {facts['status']}. What came before counts.")
    elif facts["status"] == "running":
        told.append("The run has not finished, or its process ended without a word.")
    told += [facts["problem"]] if facts["problem"] else []
    told += [str(failure)[:MOST_TEXT] for failure in facts["failures"][:50]]
    told += [str(warning)[:MOST_TEXT] for warning in facts["warnings"][:50]]
    if found.dropped:
        count = counted(found.dropped, "violation")
        told.append(f"{count} of more signatures than a page holds are in the Parquet files only.")
    listed = sum(map(len, found.members.values()))
    if listed < found.summary.violations:
        told.append(
            f"{listed:,} of the violations are listed one by one; the Parquet files hold all of them."
        )
    return told


def suite_row(found: Findings, name: str, totals: SuiteTotals) -> dict[str, Any]:
    curve = found.curves.get(name)
    lately = curve.lately() if curve else None
    return {
        "name": name,
        "totals": totals,
        "risk": totals.residual_risk,
        "cut": totals.cut / totals.executions if totals.executions else None,
        "lately": None if lately is None else f"{1000 * lately:,.1f}",
        "exhausted": "; ".join(
            f"{words}: {count:,}"
            for (suite, words), count in sorted(found.exhausted.items())
            if suite == name
        ),
        "curve": spark(curve) if curve else "",
        "per_second": totals.operations / (totals.busy_us / 1e6) if totals.busy_us else 0.0,
    }


def yield_row(key: tuple[str, str, str], found: Findings) -> dict[str, Any]:
    total = found.yields[key]
    engine, mode, strategy = key
    seconds = total.busy_us / 1e6
    return {
        "name": " ".join(part for part in (strategy or engine, mode) if part),
        "total": total,
        "rate": total.executions / seconds if seconds else 0.0,
        "classes": 1000 * total.classes / total.executions if total.executions else None,
        "violating": 1000 * total.violating / total.trials if total.trials else None,
    }


def round_rows(found: Findings) -> list[dict[str, Any]]:
    """A line for each arm: its trials in the last rounds, and what all rounds together brought."""
    rows = []
    for arm in sorted({arm for gained in found.rounds for arm in gained})[:MOST_ARMS]:
        mine = [gained.get(arm, Gain()) for gained in found.rounds]
        trials = sum(gain.trials for gain in mine)
        classes = sum(gain.classes for gain in mine)
        rows.append(
            {
                "name": str(arm),
                "trials": [gain.trials for gain in mine[-MOST_ROUNDS:]],
                "violations": sum(gain.violations for gain in mine),
                "signatures": sum(gain.signatures for gain in mine),
                "classes": classes / trials if trials and found.controlled else None,
            }
        )
    return rows


def group_data(found: Findings, group: Group, what: Shown) -> dict[str, Any]:
    """What the page's script shows of a group when it is opened."""
    members = found.members.get(group.signature, [])
    shared = group.message[:MOST_TEXT]
    return {
        "signature": group.signature,
        "suite": group.suite,
        "invariant": group.invariant,
        "count": group.count,
        "seed": str(group.seed),  # numbers of 64 bits are none of JavaScript
        "phase": group.phase,
        "message": shared,
        "command": found.command(group),
        "lines": [
            line.removeprefix("  ")[:MOST_TEXT]
            for line in (*made_smaller(found, group), *what.lines)
        ],
        "note": what.note[:MOST_TEXT],
        "lanes": what.lanes,
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


def made_smaller(found: Findings, group: Group) -> list[str]:
    """That this is not what the run recorded, where that is so."""
    shrunk = found.shrunk.get(group.signature)
    if shrunk is None or shrunk.before is None or shrunk.after is None:
        return []
    pairs = [
        (noun, getattr(shrunk.before, f"{noun}s"), getattr(shrunk.after, f"{noun}s"))
        for noun in ("thread", "operation", "decision", "step")
    ]
    # Of real threads, decisions and steps before are not known.
    told = [f"{counted(was, noun)} to {now:,}" for noun, was, now in pairs if was and was != now]
    return [f"made smaller after the run: {', '.join(told)}"]


# Drawings ----------------------------------------------------------------------------------------


def drawing(drawn: Timeline) -> dict[str, Any]:
    """Places in pixels of everything in an interleaving."""
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
    """A curve from dot to dot that leaves downwards and comes in from above, beside texts where it can."""
    if x1 == x2:
        return f"M{x1 - 5},{y1} C{x1 - 16},{y1} {x1 - 16},{y2} {x1 - 6},{y2}"
    side = 7 if x2 < x1 else -7
    return f"M{x1},{y1 + 5} C{x1},{y1 + 26} {x2 + 5 * side},{y2 - 26} {x2 + side},{y2 - 3}"


def spark(curve: Curve) -> str:
    return chart([(float(made), float(seen)) for made, seen in curve.points], SPARK)


def chart(points: Sequence[tuple[float, float]], size: tuple[int, int]) -> str:
    """The points of a polyline that fills ``size``; from 0 upwards."""
    width, height = size
    right, top = (
        max((x for x, _ in points), default=0) or 1,
        max((y for _, y in points), default=0) or 1,
    )
    return " ".join(f"{x / right * width:.1f},{height - y / top * height:.1f}" for x, y in points)
