"""``explain`` on records of Python tests: their file is found again, and locks are tried."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.exit_codes import USAGE, VIOLATION
from tests.commands import call

SOURCE = """\
import threading


class Box:
    def __init__(self):
        self.number = 0


def run(*functions):
    threads = [threading.Thread(target=each) for each in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_lost_update():
    box = Box()

    def add():
        box.number += 1

    run(add, add)
    assert box.number == 2


def test_crossed_locks():
    one, two = threading.Lock(), threading.Lock()

    def forth():
        with one:
            with two:
                pass

    def back():
        with two:
            with one:
                pass

    run(forth, back)


def test_lost_notification():
    changed = threading.Condition()

    def notify():
        with changed:
            changed.notify()

    def wait():
        with changed:
            changed.wait()

    run(notify, wait)
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("python_causes")
    (folder / "check_causes.py").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        found = call("check", "check_causes.py", "--executions", "200")
    assert found.code == VIOLATION, found.err
    failures = (folder / ".pulsar_ml" / "failures").iterdir()
    return {path.name.rpartition("-")[0]: path for path in failures}


def explained(record: Path) -> dict[str, Any]:
    done = call("explain", str(record), "--trust", "--json")
    assert done.code == VIOLATION, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def test_a_lock_around_two_regions_is_a_hint(records: dict[str, Path]) -> None:
    result = explained(records["test_lost_update"])
    (change,) = result["hints"][0]["changes"]
    assert change.startswith("one lock around test_lost_update.add ")
    assert change.endswith(f"check_causes.py:{line_of('box.number += 1')}")
    assert any("that update is lost" in each for each in result["why"])
    assert result["inevitable"].startswith("the failure became inevitable when thread ")


def test_orders_are_no_changes_of_python(records: dict[str, Path]) -> None:
    changes = [
        change
        for hint in explained(records["test_lost_update"])["hints"]
        for change in hint["changes"]
    ]
    assert changes and all("lock" in change for change in changes)


def test_a_deadlock_of_python_is_a_cycle(records: dict[str, Path]) -> None:
    why = explained(records["test_crossed_locks"])["why"]
    assert why[-1] == "thread 1 and thread 2 wait for each other: a cycle"
    inner = SOURCE.index("with one:", SOURCE.index("with two:\n            with one"))
    assert any(
        f":{SOURCE[:inner].count(chr(10)) + 1}, which thread 1 holds" in each for each in why
    )


def test_a_notification_before_the_wait_wakes_nobody(records: dict[str, Path]) -> None:
    (only,) = explained(records["test_lost_notification"])["why"]
    assert f"check_causes.py:{line_of('changed.wait()')}" in only
    assert only.endswith(
        "until another thread releases it, as the wait of a condition does: no thread did"
    )


def test_a_record_without_its_file_is_refused(records: dict[str, Path], tmp_path: Path) -> None:
    content = json.loads(records["test_lost_update"].read_text())
    content["recipe"] = ""
    record = tmp_path / "record.json"
    record.write_text(json.dumps(content))
    done = call("explain", str(record), "--trust")
    assert done.code == USAGE
    assert "does not name its file" in done.err


def test_a_record_of_another_file_needs_trust(records: dict[str, Path]) -> None:
    done = call("explain", str(records["test_lost_update"]))
    assert done.code == USAGE
    assert "--trust" in done.err
