"""pytest: the fixture ``interleave`` explores a subject under a budget, and fails with the lane table.

Loaded through the entry point of the package; ``pytest --help`` lists the options. Under pytest-xdist each
test that uses the fixture becomes one test for each worker: they share the budget, have no program in
common, and a failure that several of them found is shown once.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.oracle import Judge
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.search.interleave import Interleavings
    from pulsar_ml.harness.subjects.subject import Subject

MARKER = "interleave"
FAILURE = "pulsar_ml.failure"  # the property of a report that holds a failure in its short form
RECORD = "pulsar_ml.record"
EXPLORED = (
    "pulsar_ml.explored"  # what was explored, in one line; under -v the passed tests' are shown
)


@pytest.hookimpl(trylast=True)  # so that a name which another plugin has is taken already
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pulsar_ml", "interleavings of native code (pulsar_ml)")
    for name, options in OPTIONS.items():
        try:
            group.addoption(f"--{name}", dest=f"interleave_{name}", **options)
        except (ValueError, argparse.ArgumentError):
            group.addoption(f"--interleave-{name}", dest=f"interleave_{name}", **options)


OPTIONS: Mapping[str, dict[str, Any]] = {
    "seed": {
        "type": int,
        "metavar": "N",
        "help": "first seed of every exploration (default: the marker's, or 0)",
    },
    "executions": {
        "type": int,
        "metavar": "N",
        "help": "executions of each test, in place of its own budget",
    },
    "seconds": {
        "type": float,
        "metavar": "S",
        "help": "a time for each test, in place of its own budget",
    },
    "replay": {
        "metavar": "RECORD",
        "help": "make a failure again: a record's path, or its short form",
    },
    "sarif": {"metavar": "FILE", "help": "write the failures of the run as SARIF 2.1.0"},
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(executions=20000, seconds=None, programs=20, threads=2, operations=4, mode='c11', "
        "strategy='portfolio', seed=0, split=True, ...): defaults of the fixture of that name; see "
        "pulsar_ml.harness.interleave. split=False: not one test for each worker of pytest-xdist",
    )
    replayed = None
    if (given := config.getoption("interleave_replay")) is not None:
        replayed = read_record(given)
    config.stash[REPLAYED] = replayed
    if None not in (
        config.getoption("interleave_executions"),
        config.getoption("interleave_seconds"),
    ):
        raise pytest.UsageError("--executions and --seconds are two budgets; give one of them")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Merge(config), "pulsar_ml-merge")


REPLAYED = pytest.StashKey["Failure | None"]()


def read_record(given: str) -> Failure:
    from pulsar_ml.errors import BadRecordError, UsageError
    from pulsar_ml.harness.search.failure import SHORT, Failure
    from pulsar_ml.input_files import bounded_text

    try:
        text = given if given.startswith(SHORT) else bounded_text(Path(given), "the record")
        return Failure.from_text(text)
    except (UsageError, BadRecordError) as error:
        raise pytest.UsageError(f"--replay {given[:80]}: {error}") from None


# One test for each worker -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shard:
    """Part ``number`` of ``count`` of a test's budget."""

    number: int = 0
    count: int = 1

    def share(self, total: int) -> int:
        return total // self.count + (self.number < total % self.count)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "interleave_shard" not in metafunc.fixturenames:
        return
    workers = int(getattr(metafunc.config, "workerinput", {}).get("workercount", 1))
    marker = metafunc.definition.get_closest_marker(MARKER)
    split = marker is None or marker.kwargs.get("split", True)
    if workers > 1 and split and metafunc.config.stash[REPLAYED] is None:
        shards = [Shard(number, workers) for number in range(workers)]
        names = [f"part{shard.number + 1}of{workers}" for shard in shards]
        metafunc.parametrize("interleave_shard", shards, ids=names, indirect=True)


@pytest.fixture
def interleave_shard(request: pytest.FixtureRequest) -> Shard:
    """Which part of the budget this test has; the plugin's own."""
    return getattr(request, "param", Shard())


# The fixture ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interleave:
    """Explores a subject with the budget of the test that asked for it."""

    item: pytest.Item
    shard: Shard
    marked: Mapping[str, Any]
    properties: list[tuple[str, object]] = field(default_factory=list)

    def __call__(self, subject: Subject, **options: Any) -> Interleavings:
        """Explore ``subject``; InterleavingFailure when an execution fails.

        ``options`` are those of :func:`pulsar_ml.harness.search.interleave.interleave`, over those of the marker;
        the command line is over both. With ``--replay`` the recorded execution is made instead.
        """
        __tracebackhide__ = True
        from pulsar_ml.harness.search.interleave import (
            InterleavingFailure,
            failure_text,
            interleave,
        )

        replayed = self.item.config.stash[REPLAYED]
        if replayed is not None:
            self.replay(replayed, subject, options.get("judge"))
        chosen = {**self.marked, **options}
        for name in ("seed", "executions", "seconds"):
            if (given := self.item.config.getoption(f"interleave_{name}")) is not None:
                chosen[name] = given
                if name == "executions":
                    chosen["seconds"] = None
        shard = self.shard
        chosen["seed"] = chosen.get("seed", 0) + shard.number
        if chosen.get("seconds") is None:
            chosen["executions"] = max(1, shard.share(chosen.get("executions", 20_000)))
            chosen["programs"] = max(1, shard.share(chosen.get("programs", 20)))
        found = interleave(subject, stride=shard.count, **chosen)
        self.note(found)
        if found.failure is not None:
            record = self.keep(found.failure)
            self.properties.append((FAILURE, found.failure.short()))
            self.properties.append((RECORD, str(record)))
            text = failure_text(found.failure, subject, judge=chosen.get("judge"))
            test = self.item.nodeid.replace(f"[part{shard.number + 1}of{shard.count}]", "")
            again = f"make it again: pytest --replay {record} {test!r}"
            raise InterleavingFailure(found.failure, f"{text}\n{found.describe()}\n{again}")
        if not found.exercised:
            pytest.fail(
                f"{found.describe()}\nnothing was exercised: no location was touched by two threads. "
                "Is the module a checked build, and do the operations share anything?",
                pytrace=False,
            )
        return found

    def replay(self, failure: Failure, subject: Subject, judge: Judge | None) -> NoReturn:
        from pulsar_ml.harness.search.failure import replay
        from pulsar_ml.harness.search.interleave import InterleavingFailure, failure_text

        if failure.subject != subject.name:
            pytest.skip(
                f"the record is of subject {failure.subject!r}, this test is about {subject.name!r}"
            )
        again = replay(failure, subject, judge)
        if again.failure is not None:
            raise InterleavingFailure(again.failure, failure_text(failure, subject, judge=judge))
        pytest.skip(f"replayed: {again.verdict()}")

    def note(self, found: Interleavings) -> None:
        """What was explored, as properties of the test (JUnit XML has them)."""
        self.properties.append((EXPLORED, found.describe()))
        for name in ("seed", "programs", "executions", "mode", "strategy", "classes", "cut"):
            self.properties.append((f"pulsar_ml.{name}", getattr(found, name)))
        self.properties.append(("pulsar_ml.residual_risk", f"{found.residual_risk:.3g}"))

    def keep(self, failure: Failure) -> Path:
        """Write the record where ``--replay`` finds it; equal failures of one test have one file."""
        from pulsar_ml.harness.testing.sarif import fingerprint

        folder = self.item.config.rootpath / ".pulsar_ml" / "failures"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{failure.subject}-{fingerprint(failure)[:12]}.json"
        path.write_text(failure.to_json() + "\n")
        return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


@pytest.fixture
def interleave(request: pytest.FixtureRequest, interleave_shard: Shard) -> Interleave:
    """``interleave(subject, **options)``: explore a subject within the budget; a failure shows its lanes."""
    marker = request.node.get_closest_marker(MARKER)
    marked = dict(marker.kwargs) if marker else {}
    marked.pop("split", None)
    return Interleave(request.node, interleave_shard, marked, request.node.user_properties)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The lanes alone, without the stack of the harness; then what Hypothesis noted."""
    report = yield
    if call.excinfo is not None and call.excinfo.typename == "InterleavingFailure":
        error = call.excinfo.value
        # Hypothesis ends with lines that only failing examples ran: the harness's, and of no help.
        noted = "\n".join(getattr(error, "__notes__", ())).partition("Explanation:")[0].rstrip()
        shown = call.excinfo.getrepr(style="value", chain=False)
        shown.reprtraceback.reprentries[0].lines = [*str(error).splitlines(), *noted.splitlines()]
        if shown.reprcrash is not None:  # what the summary at the end shows, whole where CI is set
            shown.reprcrash.message = str(error).partition("\n")[0]
        report.longrepr = shown
    return report


# Failures of all workers ------------------------------------------------------------------------


def writable(path: Path) -> Path:
    """A file that can be written at the end of the run; UsageError before it if not."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("a").close()
    except OSError as error:
        raise pytest.UsageError(f"--sarif {path}: {error.strerror or error}") from None
    return path.resolve()


class Merge:
    """Collects failures where the reports arrive: shows each signature once, and writes SARIF."""

    def __init__(self, config: pytest.Config) -> None:
        self.root = config.rootpath
        given = config.getoption("interleave_sarif")
        self.target = None if given is None else writable(Path(given))
        self.first: dict[tuple[str, ...], str] = {}
        self.failures: list[Failure] = []
        self.tests: list[
            tuple[str, int | None, str]
        ] = []  # the places of the tests that found them
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
        if not report.failed:
            return
        properties = dict(report.user_properties)
        if FAILURE not in properties:
            return
        failure = Failure.from_text(str(properties[FAILURE]))
        key = (failure.subject, *failure.signature)
        if key in self.first:
            report.longrepr = (
                f"the same failure as in {self.first[key]}; record: {properties[RECORD]}"
            )
        else:
            self.first[key] = report.nodeid
            self.failures.append(failure)
            self.tests.append(report.location)

    def pytest_sessionfinish(self) -> None:
        if self.target is None:
            return
        from pulsar_ml.harness.testing.sarif import location, log, result_of

        results = []
        for failure, (file, line, test) in zip(self.failures, self.tests, strict=True):
            # Wrong answers have no place in the code; theirs is the test.
            at_test = location(f"{test} {file}:{(line or 0) + 1}")
            results.append(
                {"locations": [at_test], **result_of(failure)} if at_test else result_of(failure)
            )
        self.target.write_text(json.dumps(log(results, self.root), indent=2) + "\n")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.explored:
            terminalreporter.section("interleavings explored without a failure")
            for line in self.explored:
                terminalreporter.line(line)
        if self.failures:
            terminalreporter.section("interleavings that failed")
            for failure, test in zip(self.failures, self.first.values(), strict=True):
                terminalreporter.line(
                    f"{failure.subject}: {failure.kind}: {failure.message} ({test})"
                )
