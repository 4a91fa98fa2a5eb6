"""``pulsar-ml explain`` names the change that ends a failure, and says so when it knows none."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.campaign.local.failures import read_failure
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.exit_codes import USAGE, VIOLATION
from pulsar_ml.harness.causes.candidates import spans_of
from pulsar_ml.harness.causes.hints_file import read_hints
from tests.commands import call

SOURCE = """\
#include <atomic>
#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <thread>

std::atomic<int> flag, first, second, count;
std::mutex key;
std::shared_mutex shared;
int data, hits;

void test_message() {
    std::thread other([] { data = 42; flag.store(1, std::memory_order_relaxed); });
    if (flag.load(std::memory_order_acquire)) assert(data == 42);
    other.join();
}

void test_both_look() {
    int seen = 0, own = 0;
    std::thread other([&] {
        first.store(1, std::memory_order_release);
        seen = second.load(std::memory_order_acquire);
    });
    second.store(1, std::memory_order_release);
    own = first.load(std::memory_order_acquire);
    other.join();
    assert(seen || own);
}

void test_lost_update() {
    std::thread other([] {
        int before = count.load();
        count.store(before + 1);
    });
    int before = count.load();
    count.store(before + 1);
    other.join();
    assert(count.load() == 2);
}

void test_lost_in_locks() {
    auto add = [] {
        key.lock();
        int before = data;
        key.unlock();
        key.lock();
        data = before + 1;
        key.unlock();
    };
    std::thread other(add);
    add();
    other.join();
    assert(data == 2);
}

void test_lost_in_shared_locks() {
    auto add = [] {
        shared.lock_shared();
        int before = data;
        shared.unlock_shared();
        shared.lock();
        data = before + 1;
        shared.unlock();
    };
    std::thread other(add);
    add();
    other.join();
    assert(data == 2);
}

void test_hits() {
    std::thread other([] { hits++; });
    hits++;
    other.join();
}

void test_of_one_thread() {
    std::thread other([] { flag.load(std::memory_order_relaxed); });
    flag.store(2);
    other.join();
    assert(flag.load() == 3);
}
"""


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("explain")
    (folder / "causes.cpp").write_text(SOURCE)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.chdir(folder)
        found = call("check", "causes.cpp", "--executions", "300")
    assert found.code == VIOLATION, found.err
    failures = (folder / ".pulsar_ml" / "failures").glob("*.json")
    return {path.name.rpartition("-")[0]: path for path in failures}


def explained(record: Path, *options: str) -> dict[str, Any]:
    done = call("explain", str(record), "--trust", "--json", *options)
    assert done.code == VIOLATION, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


def line_of(text: str) -> int:
    return SOURCE[: SOURCE.index(text)].count("\n") + 1


def test_the_order_that_is_missing_comes_first(records: dict[str, Path]) -> None:
    hint = explained(records["test_message"])["hints"][0]
    (change,) = hint["changes"]
    assert change.startswith("release for the store at ")
    assert change.endswith(f"causes.cpp:{line_of('data = 42;')} (relaxed now)")
    assert hint["complete"] is True


def test_two_threads_that_write_and_look_need_fences_on_both_sides(
    records: dict[str, Path],
) -> None:
    changes = explained(records["test_both_look"])["hints"][0]["changes"]
    assert len(changes) == 2 and all("seq_cst" in change for change in changes)


@pytest.mark.parametrize(
    "name", ["test_lost_update", "test_hits", "test_lost_in_locks", "test_lost_in_shared_locks"]
)
def test_steps_that_others_come_between_need_a_lock(records: dict[str, Path], name: str) -> None:
    (hint, *_) = explained(records[name])["hints"]
    (change,) = hint["changes"]
    assert change.startswith("one lock around ")
    assert hint["complete"] is True


def test_a_lock_around_locks_is_taken_before_them(records: dict[str, Path]) -> None:
    (change,) = explained(records["test_lost_in_locks"])["hints"][0]["changes"]
    first, last = line_of("key.lock();"), line_of("data = before + 1")
    places = re.findall(r"(?:causes.cpp:|line )(\d+)", change)  # a line of the same function
    assert change.startswith("one lock around ") and places == [str(first), str(last)]


@pytest.mark.parametrize(("unlocks", "start"), [([0], "lock"), ([1], "read"), ([], "read")])
def test_what_a_thread_does_not_give_back_is_a_signal_and_no_lock(
    unlocks: list[int], start: str
) -> None:
    """A semaphore that another thread posts holds nothing until the end of the call."""
    step = {"thread": 0, "call": 0, "failed": False, "pc": 16}
    events = [
        {**step, "op": "lock", "address": 64},
        {**step, "op": "read", "address": 8},
        *({**step, "op": "unlock", "address": 64, "thread": thread} for thread in unlocks),
        {**step, "op": "write", "address": 8},
    ]
    (span,) = spans_of(events, {8}, complete=True)
    assert (span.start["op"], span.first["op"], span.last["op"]) == (start, "read", "write")


def test_the_cause_comes_first_and_is_kept_beside_the_failure(records: dict[str, Path]) -> None:
    record = records["test_lost_update"]
    done = call("explain", str(record), "--trust")
    lines = done.out.splitlines()
    kept = read_hints(record, read_failure(record))
    assert kept is not None and kept.why and kept.inevitable
    said = [f"  {each}" for each in (*kept.why, kept.inevitable)]
    start = lines.index("why:") + 1
    assert lines[start : start + len(said)] == said
    assert lines[start + len(said)].startswith("the failure is gone with one of these changes")
    line = line_of("count.store")
    assert any(place.endswith(f"causes.cpp:{line}") for place in kept.hints[0].places)


def test_hints_of_another_failure_are_not_read(records: dict[str, Path], tmp_path: Path) -> None:
    record = records["test_message"]
    explained(record)
    failure = read_failure(record)
    shrunk = replace(failure, decisions=(*failure.decisions, (99, 0, 0, 1)))
    assert read_hints(record, failure) is not None
    assert read_hints(record, shrunk) is None
    assert read_hints(tmp_path / "other.json", failure) is None


def test_a_failure_that_no_change_ends_has_no_hint(records: dict[str, Path]) -> None:
    result = explained(records["test_of_one_thread"])
    assert result["hints"] == [] and result["tried"] > 0
    done = call("explain", str(records["test_of_one_thread"]), "--trust")
    assert re.search(r"hints: none; none of \d+ changes? ends the failure", done.out)


def test_a_record_of_real_threads_is_sent_to_hunt(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    of_threads = ReplayRecord(
        suite="refcount", seed=1, threads=2, operations=10, noise=False, settings={}, build_id="1",
        module="pulsar_ml.operations._native",
    )  # fmt: skip
    record.write_text(of_threads.to_json())
    done = call("explain", str(record))
    assert done.code == USAGE
    assert " hunt " in done.err and "is of real threads" in done.err


def test_a_damaged_file_is_no_record(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text("damaged")
    done = call("explain", str(record))
    assert done.code == USAGE
    assert "record.json" in done.err and "hunt" not in done.err
