"""Collects the failures of all workers of pytest, for its last lines, SARIF and Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pulsar_ml.harness.testing.properties import BASELINE, EXPLORED, FAILURE, KNOWN, LANES, RECORD
from pulsar_ml.wording import counted

if TYPE_CHECKING:
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.testing.known import Baseline


def writable(name: str, file: str | None) -> Path | None:
    """Return the absolute path of an option's file after checking that it can be written."""
    if file is None:
        return None
    path = Path(file)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise pytest.UsageError(f"--{name} {path}: {error.strerror or error}") from None
    return path.resolve()


class Merge:
    """Shows each signature once, counts the known ones, and writes SARIF and Markdown."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        self.sarif = writable("sarif", config.getoption("interleave_sarif"))
        self.markdown = writable("markdown", config.getoption("interleave_markdown"))
        self.baseline: Baseline | None = config.stash[BASELINE]
        self.first: dict[tuple[str, ...], str] = {}
        self.failures: list[Failure] = []
        self.tests: list[tuple[str, int | None, str]] = []  # location of each failure's test
        self.records: list[Path] = []
        self.texts: list[str] = []  # with the lanes
        self.notes: list[str] = []  # of the baseline; "" for a new failure
        self.explored: list[str] = []
        self.verbose = config.get_verbosity() > 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from pulsar_ml.harness.search.failure import Failure

        if report.when != "call":
            return
        if report.passed and self.verbose:
            self.explored += [
                f"{found} ({report.nodeid})"
                for name, found in report.user_properties
                if name == EXPLORED
            ]
        properties = dict(report.user_properties)
        if FAILURE not in properties or not (report.failed or KNOWN in properties):
            return
        failure = Failure.from_text(str(properties[FAILURE]))
        key = (failure.subject, *failure.signature)
        if key not in self.first:
            self.first[key] = report.nodeid
            self.failures.append(failure)
            self.tests.append(report.location)
            self.records.append(Path(str(properties[RECORD])))
            kept = [text for name, text in report.sections if LANES in name]
            self.texts.append(kept[0] if kept else report.longreprtext)
            self.notes.append(str(properties.get(KNOWN, "")))
        elif report.failed:
            report.longrepr = (
                f"the same failure as in {self.first[key]}; record: {properties[RECORD]}"
            )

    def pytest_sessionfinish(self) -> None:
        if self.sarif is not None:
            self.write_sarif(self.sarif)
        if self.markdown is not None:
            self.write_markdown(self.markdown)

    def write_sarif(self, target: Path) -> None:
        from pulsar_ml.harness.testing.sarif import log, result_of_test

        results = [
            result_of_test(
                failure,
                f"{test} {file}:{(line or 0) + 1}",
                note=note,
                record=record,
                against=self.baseline is not None,
            )
            for failure, (file, line, test), note, record in zip(
                self.failures, self.tests, self.notes, self.records, strict=True
            )
        ]
        target.write_text(
            json.dumps(log(results, self.root, "pytest"), indent=2) + "\n", encoding="utf-8"
        )

    def write_markdown(self, target: Path) -> None:
        from pulsar_ml.harness.testing.known import short_signature
        from pulsar_ml.harness.testing.markdown import FailedTest, summary_of_tests

        failed = [
            FailedTest(
                test,
                short_signature(failure),
                f"{failure.kind}: {failure.message}",
                text,
                note,
            )
            for failure, test, text, note in zip(
                self.failures, self.first.values(), self.texts, self.notes, strict=True
            )
        ]
        with target.open("a", encoding="utf-8", errors="replace") as file:
            file.write(summary_of_tests(self.headline(), failed))

    def headline(self) -> str:
        count = counted(len(self.failures), "failure") if self.failures else "no failure"
        return f"pytest: {count} of an interleaving{self.against()}"

    def against(self) -> str:
        if self.baseline is None:
            return ""
        from pulsar_ml.harness.testing.known import short_signature

        return f"; {self.baseline.sentence([short_signature(one) for one in self.failures])}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.explored:
            terminalreporter.section("interleavings explored without a failure")
            for line in self.explored:
                terminalreporter.line(line)
        if self.failures:
            terminalreporter.section("interleavings that failed")
            for failure, test, note in zip(
                self.failures, self.first.values(), self.notes, strict=True
            ):
                known = f"; {note}" if note else ""
                terminalreporter.line(
                    f"{failure.subject}: {failure.kind}: {failure.message} ({test}){known}"
                )
        if self.baseline is not None:
            terminalreporter.line(self.against().removeprefix("; "))
