"""The same findings for machines and for text: SARIF, JUnit's XML, Markdown and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.store.summary import rounds_data, search_data, short_number, summary_data
from pulsar_ml.harness.testing.sarif import log, result_of
from pulsar_ml.report.findings import MOST_TEXT, Findings
from pulsar_ml.report.kill_cells import KillCells
from pulsar_ml.report.page import headline, notes, sentences
from pulsar_ml.report.traces import Shown

MOST_LISTED = 1_000  # signatures in Markdown
# What XML cannot hold, however it is written.
NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&$@])")


def as_json(found: Findings, shown: Sequence[Shown]) -> str:
    """Everything, as one object."""
    data = {
        "run_id": found.run.facts["run_id"],
        "status": found.run.facts["status"],
        "build_id": found.run.facts["build_id"],
        "exit_code": found.exit_code,
        "headline": headline(found),
        "sentences": sentences(found),
        "notes": notes(found),
        **summary_data(found.summary, found.command),
        "verdict": found.verdict,
        "dropped": found.dropped,
        "coverage": {suite: curve.points for suite, curve in sorted(found.curves.items())},
        "rate": found.rate.points(),
        "exhausted": [
            [suite, words, count] for (suite, words), count in sorted(found.exhausted.items())
        ],
        "strategies": [
            {"engine": engine, "mode": mode, "strategy": strategy, **asdict(total)}
            for (engine, mode, strategy), total in sorted(found.yields.items())
        ],
        "rounds": rounds_data(found.rounds),
        "search": search_data(found.searched),
        "shrunk": {
            signature: {"before": shrunk.before and asdict(shrunk.before)}
            | {"after": shrunk.after and asdict(shrunk.after)}
            for signature, shrunk in sorted(found.shrunk.items())
        },
        "kill_table": found.kill_table,
        "product_kill_table": None if found.kill_cells is None else cells_data(found.kill_cells),
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


def as_sarif(found: Findings, shown: Sequence[Shown]) -> str:
    """One result a signature; those of the engine with their places in the source."""
    results = [
        result(group, what, found.command(group))
        for group, what in zip(found.summary.in_order(), shown, strict=True)
    ]
    return json.dumps(log(results, Path.cwd()), indent=2) + "\n"


def result(group: Group, what: Shown, command: str) -> dict[str, Any]:
    made: dict[str, Any] = result_of(what.failure) if what.failure else {"properties": {}}
    return {
        **made,
        "ruleId": group.invariant,
        "level": "error",
        "message": {"text": f"{group.suite}: {group.invariant}: {group.message[:MOST_TEXT]}"},
        "partialFingerprints": {"pulsarMlSignature/v1": group.signature},
        "occurrenceCount": group.count,
        "properties": {**made["properties"], "seed": str(group.seed), "replay": command},
    }


def as_junit(found: Findings, shown: Sequence[Shown]) -> str:
    """A suite for each suite: a failed case for each signature, one that passed where there is none."""
    root = ElementTree.Element("testsuites", name="pulsar_ml", tests="0", failures="0")
    tests = failures = 0
    groups = found.summary.in_order()
    for name in sorted({*found.summary.suites, *(group.suite for group in groups)}):
        totals = found.summary.suites.get(name)
        failed = [group for group in groups if group.suite == name]
        seconds = totals.busy_us / 1e6 if totals else 0.0
        idle = name in found.summary.idle_suites
        suite = ElementTree.SubElement(
            root, "testsuite", name=fit(name), tests=str(len(failed) or 1), failures=str(len(failed)),
            skipped=str(int(idle)), time=f"{seconds:.3f}",
        )  # fmt: skip
        for group in failed:
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=fit(name),
                name=fit(f"{group.invariant} {group.signature}"),
            )
            told = ElementTree.SubElement(
                case, "failure", type=fit(group.invariant), message=fit(group.message[:MOST_TEXT])
            )
            told.text = fit(
                f"{group.count} violations, smallest seed {group.seed}\n{found.command(group)}\n"
            )
        if not failed:
            case = ElementTree.SubElement(
                suite, "testcase", classname=fit(name), name=f"{totals.trials if totals else 0} trials",
                time=f"{seconds:.3f}",
            )  # fmt: skip
            if idle:
                ElementTree.SubElement(case, "skipped", message="nothing exercised")
        tests, failures = tests + (len(failed) or 1), failures + len(failed)
    root.set("tests", str(tests))
    root.set("failures", str(failures))
    ElementTree.indent(root)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        + ElementTree.tostring(root, encoding="unicode")
        + "\n"
    )


def fit(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)


def as_markdown(found: Findings, shown: Sequence[Shown]) -> str:
    """For a comment on a change, or a terminal."""
    lines = [f"# {plain(headline(found))}", ""]
    lines += [f"{plain(sentence)}\n" for sentence in sentences(found)]
    lines += [f"- {plain(note)}" for note in notes(found)]
    if found.summary.suites:
        lines += [
            "",
            "| suite | trials | violating | nothing exercised | executions | classes | risk below |",
        ]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for name, totals in sorted(found.summary.suites.items()):
        risk = totals.residual_risk
        lines.append(
            f"| {plain(name)} | {totals.trials:,} | {totals.violation:,} | {totals.nothing_exercised:,} | "
            f"{short_number(totals.executions)} | {short_number(totals.classes)} | "
            f"{'-' if risk is None else f'{risk:.1e}'} |"
        )
    groups = found.summary.in_order()
    if groups:
        lines += ["", "| suite | invariant | violations | smallest seed | message |"]
        lines += ["| --- | --- | ---: | ---: | --- |"]
    lines += [
        f"| {plain(group.suite)} | {plain(group.invariant)} | {group.count:,} | {group.seed} | "
        f"{plain(group.message[:300])} |"
        for group in groups[:MOST_LISTED]
    ]
    if found.kill_cells is not None:
        lines += ["", *cells_lines(found.kill_cells)]
    commands = [command for group in groups[:MOST_LISTED] if (command := found.command(group))]
    if commands:
        lines += [
            "",
            "Replay the smallest seed of each:",
            "",
            *(f"    {command}" for command in commands),
        ]
    if len(groups) > MOST_LISTED:
        lines += ["", f"and {len(groups) - MOST_LISTED:,} more signatures"]
    return "\n".join(lines) + "\n"


def cells_lines(cells: KillCells) -> list[str]:
    """The product's kill table: what each technique finds of each mutant."""
    columns = [plain(technique) for technique in cells.techniques]
    lines = [plain(cells.sentence()), "", f"| case | {' | '.join(columns)} |"]
    lines.append(f"| --- |{' ---: |' * len(columns)}")
    for case, row in list(cells.cases.items())[:MOST_LISTED]:
        told = (
            f"{row[name].found}/{row[name].seeds}" if name in row else "-"
            for name in cells.techniques
        )
        lines.append(f"| {plain(case)} | {' | '.join(told)} |")
    if len(cells.cases) > MOST_LISTED:
        lines += ["", f"and {len(cells.cases) - MOST_LISTED:,} more cases"]
    return lines


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return MARKUP.sub(r"\\\1", " ".join(text.split()))
