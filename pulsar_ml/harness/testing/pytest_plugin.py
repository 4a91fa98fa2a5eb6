"""The pytest plugin: its fixture ``interleave`` explores a subject within a budget.

pytest loads the plugin through the package's entry point; ``pytest --help`` lists its options.
Under pytest-xdist each test with the fixture becomes one test for each worker. These share the
budget, explore different programs, and a failure that several find is shown once.
"""

from __future__ import annotations

import argparse
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from pulsar_ml.harness.testing import python_tests
from pulsar_ml.harness.testing.budget import BUDGET, SharedBudget, is_known_of
from pulsar_ml.harness.testing.collect import (
    SourceFile,
    add_settings,
    is_collected,
    native_item,
)
from pulsar_ml.harness.testing.merge import Merge
from pulsar_ml.harness.testing.properties import (
    BASELINE,
    EXPLORED,
    FAILURE,
    RECORD,
    REPLAYED,
    keep_record,
    kept_record,
    not_again,
    pass_over_known,
)

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.oracle import Judge
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.search.interleave import Interleavings
    from pulsar_ml.harness.subjects.subject import Subject
    from pulsar_ml.harness.testing.known import Baseline

MARKER = "interleave"
BUDGETS = ("executions", "seconds", "budget")
pytest_pyfunc_call = python_tests.pytest_pyfunc_call


@pytest.hookimpl(trylast=True)  # after the other plugins, so that their option names are taken
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("pulsar_ml", "interleavings of native code (pulsar_ml)")
    for name, options in OPTIONS.items():
        try:
            group.addoption(f"--{name}", dest=f"interleave_{name}", **options)
        except (ValueError, argparse.ArgumentError):
            group.addoption(f"--interleave-{name}", dest=f"interleave_{name}", **options)
    add_settings(parser)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SourceFile | None:
    if is_collected(file_path, parent.config):
        collected: SourceFile = SourceFile.from_parent(parent, path=file_path)
        return collected
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> pytest.Item | None:
    return native_item(collector, name, obj) if name.startswith("test") else None


OPTIONS: Mapping[str, dict[str, Any]] = {
    "seed": {
        "type": int,
        "metavar": "N",
        "help": "first seed of every exploration (default: the marker's, or 0)",
    },
    "executions": {
        "type": int,
        "metavar": "N",
        "help": "executions of each test, instead of its own budget",
    },
    "seconds": {
        "type": float,
        "metavar": "S",
        "help": "seconds for each test, instead of its own budget",
    },
    "budget": {
        "metavar": "TIME",
        "help": "time for all tests of the engine together, such as 90s or 5m: each gets a slice, and "
        "the rest goes to those that still find new classes of executions",
    },
    "replay": {
        "metavar": "RECORD",
        "help": "replay a failure: the path of its record, or its short form",
    },
    "baseline": {
        "metavar": "PATH",
        "action": "append",
        "default": [],
        "help": "known failures, which do not fail the run: a folder of records, or a TOML file of "
        "known signatures; repeatable",
    },
    "sarif": {"metavar": "FILE", "help": "write the failures of the run as SARIF 2.1.0"},
    "markdown": {
        "metavar": "FILE",
        "help": "append a summary with the lanes of the failures, as for a job's summary",
    },
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(executions=20000, seconds=None, programs=20, threads=2, operations=4, mode='c11', "
        "strategy='portfolio', seed=0, split=True, ...): defaults of the fixture of that name; see "
        "pulsar_ml.harness.interleave. split=False: not one test for each worker of pytest-xdist. "
        "On a test without the fixture: every schedule of its Python threads is an execution "
        "(executions=20000, seconds=None, semantics='gil', also=(), ...); see "
        "pulsar_ml.harness.check",
    )
    replayed = None
    if (record := config.getoption("interleave_replay")) is not None:
        replayed = read_record(record)
    config.stash[REPLAYED] = replayed
    config.stash[BASELINE] = baseline_of(config.getoption("interleave_baseline"))
    budgets = [
        f"--{name}" for name in BUDGETS if config.getoption(f"interleave_{name}") is not None
    ]
    if len(budgets) > 1:
        raise pytest.UsageError(f"{' and '.join(budgets[:2])} are two budgets; use one of them")
    configure_budget(config, config.getoption("interleave_budget"))
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Merge(config), "pulsar_ml-merge")


def configure_budget(config: pytest.Config, text: str | None) -> None:
    """Let tests share the time of ``--budget``, unless they replay a record."""
    config.stash[BUDGET] = None
    if text is None or config.stash[REPLAYED] is not None:
        return
    from pulsar_ml.harness.budgets.split import duration

    try:
        config.stash[BUDGET] = budget = SharedBudget(config, duration(text))
    except ValueError as error:
        raise pytest.UsageError(f"--budget: {error}") from None
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(budget, "pulsar_ml-budget")


def baseline_of(paths: Sequence[str]) -> Baseline | None:
    """The known failures of ``--baseline`` as of today; None without the option."""
    if not paths:
        return None
    from pulsar_ml.errors import BadRecordError, UsageError
    from pulsar_ml.harness.testing.known import read_baseline, today

    try:
        return read_baseline(map(Path, paths), today())
    except (UsageError, BadRecordError) as error:
        raise pytest.UsageError(f"--baseline: {error}") from None


def read_record(record: str) -> Failure:
    """Return the failure of a record's path or of its short form."""
    from pulsar_ml.errors import BadRecordError, UsageError
    from pulsar_ml.harness.search.failure import SHORT, Failure
    from pulsar_ml.input_files import bounded_text

    try:
        text = record if record.startswith(SHORT) else bounded_text(Path(record), "the record")
        return Failure.from_text(text)
    except (UsageError, BadRecordError) as error:
        raise pytest.UsageError(f"--replay {record[:80]}: {error}") from None


# One test for each worker -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shard:
    """The share of one worker in a test's budget: number ``number`` of ``count``."""

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
    """Return this test's share of the budget; for the plugin itself."""
    return getattr(request, "param", Shard())


# The fixture ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interleave:
    """The fixture's value: explores a subject within the budget of one test."""

    item: pytest.Item
    shard: Shard
    marked: Mapping[str, Any]
    properties: list[tuple[str, object]] = field(default_factory=list)

    def __call__(self, subject: Subject, **options: Any) -> Interleavings:
        """Explore ``subject``; raises InterleavingFailure when an execution fails.

        ``options`` are those of :func:`pulsar_ml.harness.interleave`. They override the marker's,
        and the command line overrides both. With ``--replay`` the recorded execution is replayed
        instead.
        """
        __tracebackhide__ = True
        from pulsar_ml.harness.causes.description import described
        from pulsar_ml.harness.search.interleave import InterleavingFailure, interleave

        replayed = self.item.config.stash[REPLAYED]
        if replayed is not None:
            self.replay(replayed, subject, options.get("judge"))
        chosen = {**self.marked, **options}
        for name in ("seed", "executions", "seconds"):
            if (value := self.item.config.getoption(f"interleave_{name}")) is not None:
                chosen[name] = value
                if name == "executions":
                    chosen["seconds"] = None
        if (budget := self.item.config.stash[BUDGET]) is not None:
            chosen["seconds"] = budget.slice_of(self.item)
        shard = self.shard
        chosen["seed"] = chosen.get("seed", 0) + shard.number
        if chosen.get("seconds") is None:
            chosen["executions"] = max(1, shard.share(chosen.get("executions", 20_000)))
            chosen["programs"] = max(1, shard.share(chosen.get("programs", 20)))
        chosen["is_known"] = is_known_of(self.item)
        found = interleave(subject, stride=shard.count, **chosen)
        self.note(found)
        if found.failure is not None:
            record = keep_record(found.failure, self.item.config)
            self.properties.append((FAILURE, found.failure.short()))
            self.properties.append((RECORD, str(record)))
            text = described(found.failure, subject, judge=chosen.get("judge"))
            pass_over_known(self.item, found.failure, text)
            test = self.item.nodeid.replace(f"[part{shard.number + 1}of{shard.count}]", "")
            again = f"replay it: pytest --replay {record} {test!r}"
            raise InterleavingFailure(found.failure, f"{text}\n{found.describe()}\n{again}")
        if not found.exercised:
            pytest.fail(
                f"{found.describe()}\nnothing was exercised: no location was touched by two threads. "
                "Is the module a checked build, and do the operations share anything?",
                pytrace=False,
            )
        return found

    def replay(self, failure: Failure, subject: Subject, judge: Judge | None) -> NoReturn:
        from pulsar_ml.harness.search.interleave import InterleavingFailure

        if failure.subject != subject.name:
            pytest.skip(
                f"the record is of subject {failure.subject!r}, this test is about {subject.name!r}"
            )
        again = failure.replay(subject, judge)
        if again.failure is not None:
            raise InterleavingFailure(again.failure, failure.describe(subject, judge=judge))
        not_again(again)

    def note(self, found: Interleavings) -> None:
        """Add the counts to the properties of the test, which JUnit XML shows."""
        self.properties.append((EXPLORED, found.describe()))
        for name in (
            "seed",
            "programs",
            "idle",
            "executions",
            "mode",
            "strategy",
            "classes",
            "cut",
        ):
            self.properties.append((f"pulsar_ml.{name}", getattr(found, name)))
        if found.residual_risk is not None:
            self.properties.append(("pulsar_ml.residual_risk", f"{found.residual_risk:.3g}"))


@pytest.fixture
def interleave(request: pytest.FixtureRequest, interleave_shard: Shard) -> Interleave:
    """Explore a subject within the test's budget: ``interleave(subject, **options)``.

    A failing execution fails the test, and shows a column for each thread.
    """
    marker = request.node.get_closest_marker(MARKER)
    marked = dict(marker.kwargs) if marker else {}
    marked.pop("split", None)
    return Interleave(request.node, interleave_shard, marked, request.node.user_properties)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the failing execution without the harness's stack, then the notes of Hypothesis."""
    report = yield
    if call.excinfo is not None and call.excinfo.typename == "InterleavingFailure":
        error = call.excinfo.value
        # Hypothesis appends lines that only failing examples ran; here they are the harness's own.
        noted = "\n".join(getattr(error, "__notes__", ())).partition("Explanation:")[0].rstrip()
        shown = call.excinfo.getrepr(style="value", chain=False)
        lines = [
            *str(error).splitlines(),
            *noted.splitlines(),
            *kept_record(vars(error)["failure"], item),
        ]
        shown.reprtraceback.reprentries[0].lines = lines
        if shown.reprcrash is not None:  # the text of the short summary
            shown.reprcrash.message = str(error).partition("\n")[0]
        report.longrepr = shown
        report.user_properties[:] = item.user_properties
    return report
