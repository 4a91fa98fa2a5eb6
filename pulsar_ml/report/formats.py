"""Formats of a report other than the page: SARIF, JUnit XML, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.summary import rounds_data, search_data, short_number, summary_data
from pulsar_ml.harness.testing.junit import as_text, fit
from pulsar_ml.harness.testing.known import Baseline, baseline_data
from pulsar_ml.harness.testing.markdown import lanes_block, plain
from pulsar_ml.harness.testing.sarif import log, result_of, standing
from pulsar_ml.report import run_history
from pulsar_ml.report.findings import MOST_TEXT, Findings
from pulsar_ml.report.kill_cells import KillCells
from pulsar_ml.report.page import headline, notes, sentences
from pulsar_ml.report.traces import TraceView

MOST_LISTED = 1_000  # the most signatures in Markdown
MOST_MARKDOWN = 500_000  # characters; more lanes are left out


def as_json(findings: Findings, views: Sequence[TraceView]) -> str:
    """All findings as one JSON object."""
    data = {
        "run_id": findings.run.facts["run_id"],
        "status": findings.run.facts["status"],
        "build_id": findings.run.facts["build_id"],
        "exit_code": findings.exit_code,
        "headline": headline(findings),
        "sentences": sentences(findings),
        "notes": notes(findings),
        **summary_data(findings.summary, findings.command),
        "verdict": findings.verdict,
        "known_only": findings.known_only,
        "dropped": findings.dropped,
        **baseline_data(findings.summary.groups, findings.baseline),
        "coverage": {suite: curve.points for suite, curve in sorted(findings.curves.items())},
        "rate": findings.rate.points(),
        "exhausted": [
            [suite, words, count] for (suite, words), count in sorted(findings.exhausted.items())
        ],
        "strategies": [
            {"engine": engine, "mode": mode, "strategy": strategy, **asdict(total)}
            for (engine, mode, strategy), total in sorted(findings.yields.items())
        ],
        "history": None if findings.history is None else run_history.as_data(findings.history),
        "rounds": rounds_data(findings.rounds),
        "search": search_data(findings.searched),
        "shrunk": {
            signature: {"before": shrunk.before and asdict(shrunk.before)}
            | {"after": shrunk.after and asdict(shrunk.after)}
            for signature, shrunk in sorted(findings.shrunk.items())
        },
        "kill_table": findings.kill_table,
        "product_kill_table": None
        if findings.kill_cells is None
        else cells_data(findings.kill_cells),
    }
    return json.dumps(data, indent=2) + "\n"


def cells_data(cells: KillCells) -> dict[str, Any]:
    return {
        "missed": cells.missed,
        "blamed": cells.blamed,
        "cases": {
            case: [asdict(cell) for cell in row.values()] for case, row in cells.cases.items()
        },
    }


def as_sarif(findings: Findings, views: Sequence[TraceView]) -> str:
    """A SARIF log with one result for each signature; engine failures have source locations."""
    results = [
        result(group, view, findings.command(group), findings.baseline)
        for group, view in zip(findings.summary.in_order(), views, strict=True)
    ]
    content = log(results, Path.cwd(), "report")
    content["runs"][0]["properties"] = findings.summary.counts.as_data()
    return json.dumps(content, indent=2) + "\n"


def result(
    group: Group, view: TraceView, command: str, baseline: Baseline | None = None
) -> dict[str, Any]:
    base: dict[str, Any] = result_of(view.failure) if view.failure else {"properties": {}}
    return {
        **base,
        "ruleId": group.invariant,
        "level": "error",
        "message": {"text": f"{group.suite}: {group.invariant}: {group.message[:MOST_TEXT]}"},
        "partialFingerprints": {"pulsarMlSignature/v1": group.signature},
        "occurrenceCount": group.count,
        "properties": {**base["properties"], "seed": str(group.seed), "replay": command},
        **standing(known_note(group, baseline), against=baseline is not None),
    }


def known_note(group: Group, baseline: Baseline | None) -> str:
    """The baseline's note about a known group; "" for a new one."""
    if baseline is None or not baseline.is_known(group.signature):
        return ""
    return baseline.note(group.signature)


def as_junit(findings: Findings, views: Sequence[TraceView]) -> str:
    """JUnit XML: each suite has a failed case for each signature, or one passed case."""
    root = ElementTree.Element("testsuites", name="pulsar_ml")
    groups = findings.summary.in_order()
    for name in sorted({*findings.summary.suites, *(group.suite for group in groups)}):
        totals = findings.summary.suites.get(name)
        failed = [group for group in groups if group.suite == name]
        seconds = totals.busy_us / 1e6 if totals else 0.0
        known = {group.signature: known_note(group, findings.baseline) for group in failed}
        idle = name in findings.summary.idle_suites
        suite = ElementTree.SubElement(
            root, "testsuite", name=fit(name), time=f"{seconds:.3f}"
        )  # fmt: skip
        if totals is not None:
            properties = ElementTree.SubElement(suite, "properties")
            for key, count in totals.counts.as_data().items():
                ElementTree.SubElement(properties, "property", name=key, value=str(count))
        for group in failed:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=fit(name),
                name=fit(f"{group.invariant} {group.signature}"),
            )
            if known[group.signature]:
                text = f"{known[group.signature]}: {group.message[:MOST_TEXT]}"
                ElementTree.SubElement(case, "skipped", message=fit(text))
                continue
            failure = ElementTree.SubElement(
                case, "failure", type=fit(group.invariant), message=fit(group.message[:MOST_TEXT])
            )
            failure.text = fit(
                f"{group.count} violations, smallest seed {group.seed}\n{findings.command(group)}\n"
            )
        if not failed:
            case = ElementTree.SubElement(
                suite, "testcase", classname=fit(name),
                name=f"{totals.trials if totals else 0} trials", time=f"{seconds:.3f}",
            )  # fmt: skip
            if idle:
                ElementTree.SubElement(case, "skipped", message="nothing exercised")
    return as_text(root)


def as_markdown(findings: Findings, views: Sequence[TraceView]) -> str:
    """Markdown for a comment on a change, or for a terminal."""
    lines = [f"# {plain(headline(findings))}", ""]
    lines += [f"{plain(sentence)}\n" for sentence in sentences(findings)]
    lines += [f"- {plain(note)}" for note in notes(findings)]
    if findings.summary.suites:
        lines += [
            "",
            "| suite | trials | violating | nothing exercised "
            "| executions | classes | risk below |",
        ]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, totals in sorted(findings.summary.suites.items()):
        risk = totals.residual_risk
        lines.append(
            f"| {plain(name)} | {totals.trials:,} | {totals.violation:,} "
            f"| {totals.nothing_exercised:,} | {short_number(totals.executions)} "
            f"| {short_number(totals.classes)} | {'-' if risk is None else f'{risk:.1e}'} |"
        )
    groups = findings.summary.in_order()
    if groups:
        lines += ["", "| suite | invariant | violations | smallest seed | signature | message |"]
        lines += ["| --- | --- | ---: | ---: | --- | --- |"]
    lines += [
        f"| {plain(group.suite)} | {plain(group.invariant)} | {group.count:,} | {group.seed} | "
        f"{signature_cell(group, findings.baseline)} | {plain(group.message[:300])} |"
        for group in groups[:MOST_LISTED]
    ]
    if findings.history is not None:
        lines += ["", *history_lines(findings.history)]
    if findings.kill_cells is not None:
        lines += ["", *cells_lines(findings.kill_cells)]
    commands = [command for group in groups[:MOST_LISTED] if (command := findings.command(group))]
    if commands:
        lines += [
            "",
            "Replay the smallest seed of each:",
            "",
            *(f"    {command}" for command in commands),
        ]
    if len(groups) > MOST_LISTED:
        lines += ["", f"and {len(groups) - MOST_LISTED:,} more signatures"]
    for group, view in zip(groups, views, strict=True):
        if view.lanes and sum(map(len, lines)) < MOST_MARKDOWN:
            lines += ["", *lanes_block(f"{group.invariant} {group.signature}", view.lanes)]
    return "\n".join(lines) + "\n"


def signature_cell(group: Group, baseline: Baseline | None) -> str:
    status = f" {baseline.status(group.signature)}" if baseline else ""
    return plain(group.signature) + status


def history_lines(history: run_history.RunHistory) -> list[str]:
    """The runs of a history and its signatures in Markdown."""
    figure = run_history.figure
    lines = ["## History", "", *(plain(one) for one in run_history.sentences(history)), ""]
    lines += [
        "| run | started | build | trials | failing of 1,000 | classes | new | known | gone |"
    ]
    lines += ["| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in run_history.run_rows(history):
        rate = "-"
        if row["trials"]:
            interval = f"{figure(row['low'])} to {figure(row['high'])}"
            rate = f"{figure(row['failing_per_thousand'])} ({interval})"
        lines.append(
            f"| {plain(row['run_id'])} | {row['started_at'] or '-'} | {plain(row['build_id'])} "
            f"| {row['trials']:,} | {rate} | {short_number(row['classes'])} "
            f"| {row['new']} | {row['known']} | {row['gone']} |"
        )
    fates = run_history.fate_rows(history)
    if fates:
        lines += ["", "| signature | status | suite | invariant | runs | missed | message |"]
        lines += ["| --- | --- | --- | --- | ---: | ---: | --- |"]
    for row in fates:
        missed = "-" if row["chance_missed"] is None else f"{row['chance_missed']:.2%}"
        lines.append(
            f"| {plain(row['signature'])} | {row['status']} | {plain(row['suite'])} "
            f"| {plain(row['invariant'])} | {row['runs']} | {missed} | {plain(row['message'])} |"
        )
    return lines


def cells_lines(cells: KillCells) -> list[str]:
    """The product's kill table in Markdown: mutants in rows, techniques in columns."""
    columns = [plain(technique) for technique in cells.techniques]
    lines = [plain(cells.sentence()), "", f"| case | {' | '.join(columns)} |"]
    lines.append(f"| --- |{' ---: |' * len(columns)}")
    for case, row in list(cells.cases.items())[:MOST_LISTED]:
        counts = (
            f"{row[name].found}/{row[name].seeds}" if name in row else "-"
            for name in cells.techniques
        )
        lines.append(f"| {plain(case)} | {' | '.join(counts)} |")
    if len(cells.cases) > MOST_LISTED:
        lines += ["", f"and {len(cells.cases) - MOST_LISTED:,} more cases"]
    return lines
