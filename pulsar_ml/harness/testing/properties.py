"""Properties of a test in pytest's reports, the files that hold its failures, and its end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from pulsar_ml.harness.functions.check import Checked
    from pulsar_ml.harness.search.failure import Failure, Replayed

FAILURE = "pulsar_ml.failure"  # a failure in its short form
RECORD = "pulsar_ml.record"
KNOWN = "pulsar_ml.known"  # the baseline's note about a known failure
LANES = "interleaving of the known failure"  # a section of a report
EXPLORED = "pulsar_ml.explored"  # one line about the exploration; -v shows those of passed tests

BUDGETED = "pulsar_ml.budget"  # what the test got of --budget

REPLAYED = pytest.StashKey["Failure | None"]()
BASELINE = pytest.StashKey[Any]()  # a known.Baseline, or None


def keep_record(failure: Failure, config: pytest.Config) -> Path:
    """Write the record of a failure; the path is relative to the current folder where it can be."""
    from pulsar_ml.harness.testing.records import keep_failure

    path = keep_failure(failure, config.rootpath)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def kept_record(failure: Failure, item: pytest.Item) -> list[str]:
    """Keep the record of a failure that a test raised itself; return the command that replays it.

    Nothing is done for a failure that has a record, or whose subject no command can build again.
    """
    kept = any(name == RECORD for name, _ in item.user_properties)
    if kept or not failure.recipe or item.config.stash[REPLAYED] is not None:
        return []
    record = keep_record(failure, item.config)
    item.user_properties += [(FAILURE, failure.short()), (RECORD, str(record))]
    return [f"replay it: pulsar-ml replay {shlex.quote(str(record))} --trust"]


def command_options(config: pytest.Config) -> dict[str, Any]:
    """Return the options of explorations that the command line of pytest has."""
    options = {
        name: config.getoption(f"interleave_{name}") for name in ("seed", "executions", "seconds")
    }
    return {name: value for name, value in options.items() if value is not None}


def pass_over_known(item: pytest.Item, failure: Failure, text: str) -> None:
    """End a test as an expected failure when the baseline knows its failure.

    ``text`` has the lanes of the failure; the report keeps them.
    """
    __tracebackhide__ = True
    baseline = item.config.stash.get(BASELINE, None)
    if baseline is None:
        return
    from pulsar_ml.harness.testing.known import short_signature

    signature = short_signature(failure)
    if baseline.is_known(signature):
        note = baseline.note(signature)
        item.user_properties.append((KNOWN, note))
        item.add_report_section("call", LANES, text)
        pytest.xfail(f"{signature} is {note}")


def not_again(replayed: Replayed) -> NoReturn:
    """End a test whose recorded failure did not come again.

    It is skipped when the code has changed, and fails otherwise: the replay proves nothing then.
    """
    __tracebackhide__ = True
    if replayed.proves_nothing:
        pytest.fail(f"no verdict: {replayed.verdict()}", pytrace=False)
    pytest.skip(f"replayed: {replayed.verdict()}")


def finish(item: pytest.Item, result: Checked) -> None:
    """End a test function with its result: the counts become properties, which JUnit XML shows.

    Raises InterleavingFailure for a failure, KeyboardInterrupt when its shrinking was interrupted,
    and fails a test in which no two threads met.
    """
    from pulsar_ml.harness.search.interleave import InterleavingFailure
    from pulsar_ml.harness.subjects.hash_seed import assignment

    __tracebackhide__ = True
    item.user_properties.append((EXPLORED, f"{item.name}: {result.describe()}"))
    item.user_properties.append(("pulsar_ml.executions", result.exploration.executions))
    if (failure := result.failure) is not None:
        record = keep_record(failure, item.config)
        item.user_properties.append((FAILURE, failure.short()))
        item.user_properties.append((RECORD, str(record)))
        pass_over_known(item, failure, result.text)
        seed = f"{assignment(failure.hash_seed)} " if failure.hash_seed else ""
        again = f"replay it: {seed}pytest --replay {record} {item.nodeid!r}"
        if result.interrupted:  # pytest prints the sentence where it says that it was interrupted
            raise KeyboardInterrupt(f"{item.nodeid}: {failure.kind}: {failure.message}; {again}")
        raise InterleavingFailure(failure, f"{result.text}\n{result.describe()}\n{again}")
    if result.verdict != "clean":
        pytest.fail(result.describe(), pytrace=False)
