"""The files that ``pulsar-ml check`` writes for build servers: SARIF, JUnit XML and Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import option
from pulsar_ml.errors import naming
from pulsar_ml.input_files import refused

if TYPE_CHECKING:
    from pulsar_ml.harness.functions.check import Checked

FILE = click.Path(path_type=Path, dir_okay=False)
Row = Mapping[str, Any]

options = shared.together(
    option(
        "--sarif",
        type=FILE,
        metavar="FILE",
        group=shared.OUTPUT,
        help="Write the failures as SARIF 2.1.0, for code hosts and editors.",
    ),
    option(
        "--junit",
        type=FILE,
        metavar="FILE",
        group=shared.OUTPUT,
        help="Write the results as JUnit XML, for build servers.",
    ),
    option(
        "--markdown",
        type=FILE,
        metavar="FILE",
        group=shared.OUTPUT,
        help="Append a summary with the lanes of the failures, as for $GITHUB_STEP_SUMMARY.",
    ),
)


def check_writable(*paths: Path | None) -> None:
    """Make the requested files before the work, so that none fails after it. Raises OSError."""
    for path in paths:
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.open("a").close()
            except OSError as error:
                raise refused(error, path, "write") from None


def write_files(
    rows: Sequence[Row],
    results: Sequence[Checked],
    last: str,
    sarif: Path | None,
    junit: Path | None,
    markdown: Path | None,
    missed: Sequence[str] = (),
    *,
    against: bool = False,
) -> None:
    """Write the requested files; ``last`` is the last line of the command.

    ``missed`` are tests that a budget did not reach; ``against`` says that there is a baseline.
    """
    for path, text in (
        (sarif, partial(as_sarif, rows, results, against=against)),
        (junit, partial(as_junit, rows, results, missed)),
    ):
        if path is not None:
            with naming(path):
                path.write_text(text(), encoding="utf-8", errors="replace")
    if markdown is not None:
        with naming(markdown), markdown.open("a", encoding="utf-8", errors="replace") as file:
            file.write(as_markdown(rows, results, last))


def name_of(row: Row) -> str:
    return f"{row['file']}::{row['test']}"


def as_sarif(rows: Sequence[Row], results: Sequence[Checked], *, against: bool = False) -> str:
    from pulsar_ml.harness.testing.sarif import log, result_of_test

    found = [
        result_of_test(
            result.failure,
            f"{row['test']} {row['file']}:{row['line']}",
            note=row["known"],
            record=Path(row["record"]),
            against=against,
        )
        for row, result in zip(rows, results, strict=True)
        if result.failure is not None
    ]
    return json.dumps(log(found, Path.cwd(), "check"), indent=2) + "\n"


def as_junit(rows: Sequence[Row], results: Sequence[Checked], missed: Sequence[str] = ()) -> str:
    from xml.etree import ElementTree

    from pulsar_ml.harness.testing.junit import as_text, fit

    root = ElementTree.Element("testsuites", name="pulsar_ml check")
    for file in dict.fromkeys(row["file"] for row in rows):
        suite = ElementTree.SubElement(root, "testsuite", name=fit(file))
        for row, result in zip(rows, results, strict=True):
            if row["file"] != file:
                continue
            seconds = f"{result.exploration.seconds:.3f}"
            case = ElementTree.SubElement(
                suite, "testcase", classname=fit(file), name=fit(row["test"]), time=seconds
            )
            if row["known"]:
                text = f"{row['signature']} is {row['known']}: {row['message']}"
                ElementTree.SubElement(case, "skipped", message=fit(text))
            elif row["verdict"] != "clean":
                message = row["message"] or result.describe()
                kind = row["kind"] or row["verdict"]
                failure = ElementTree.SubElement(
                    case, "failure", type=fit(kind), message=fit(message)
                )
                failure.text = fit(result.text)
    for name in missed:
        file, _, test = name.rpartition("::")
        own = [one for one in root if one.get("name") == fit(file)]
        suite = own[0] if own else ElementTree.SubElement(root, "testsuite", name=fit(file))
        case = ElementTree.SubElement(suite, "testcase", classname=fit(file), name=fit(test))
        ElementTree.SubElement(case, "skipped", message="not run: the budget ended first")
    return as_text(root)


def as_markdown(rows: Sequence[Row], results: Sequence[Checked], last: str) -> str:
    from pulsar_ml.harness.testing.markdown import FailedTest, summary_of_tests

    failed = [
        FailedTest(
            name_of(row),
            row["signature"],
            f"{row['kind']}: {row['message']}",
            result.text,
            row["known"],
        )
        for row, result in zip(rows, results, strict=True)
        if row["signature"]
    ]
    return summary_of_tests(f"pulsar-ml check: {last}", failed)
