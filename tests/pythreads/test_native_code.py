"""Checked modules below Python threads: accesses without the GIL are steps of the execution."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pulsar_ml.harness import build_extension, load_checked
from pulsar_ml.harness.locations.names import member_in
from pulsar_ml.harness.pythreads.check import explore_python, replay_python

HERE = Path(__file__).parent / "native_code"
SEEDS = range(20)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("native_code")


@pytest.fixture(scope="module")
def counters(folder: Path) -> ModuleType:
    return load_checked(build_extension(HERE / "counters.pyx", into=folder, checked=True))


@pytest.fixture(scope="module")
def mailbox(folder: Path) -> ModuleType:
    path = build_extension(HERE / "mailbox.pyx", into=folder, checked=True, language="c++")
    return load_checked(path)


def both(*functions: Callable[[], object]) -> None:
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def explored(test: Callable[[], None], **options: Any) -> Any:
    return explore_python(test, **{"isolated": False, "executions": 2000, **options})


def adding(kind: Any) -> Callable[[], None]:
    def test() -> None:
        counter = kind()

        def add() -> None:
            counter.add()

        both(add, add)
        assert counter.get() == 2

    return test


def test_a_race_without_the_gil_is_found_by_each_seed(counters: ModuleType) -> None:
    for seed in SEEDS:
        done, _ = explored(adding(counters.Counter), seed=seed, shrinks=False)
        assert done.failure is not None, seed
        assert done.failure.kind == "data race"
        assert "counters.pyx" in done.failure.where[0]


def test_the_mended_counter_is_silent(counters: ModuleType) -> None:
    for seed in SEEDS[:4]:
        done, text = explored(adding(counters.LockedCounter), seed=seed)
        assert done.verdict == "clean", text
        assert done.one_step == ()


def test_lines_of_python_and_of_cython_stand_in_one_table(counters: ModuleType) -> None:
    test = adding(counters.Counter)
    done, text = explored(test)
    table = text[text.index("thread 0  ") :]
    assert "test_native_code.py:" in table
    assert "GIL  counters.pyx:" in table
    assert "write self.value  counters.pyx:" in table
    assert "self.value += 1" in table
    again, replayed = replay_python(test, done.failure, isolated=False)
    assert again.exact
    assert replayed == text


def test_native_code_with_the_gil_races_with_a_section_without_it(counters: ModuleType) -> None:
    def writes_beside() -> None:
        cell = counters.Cell()
        both(lambda: cell.set(1), cell.get)

    def writes_with_the_gil() -> None:
        cell = counters.Cell()
        both(lambda: cell.set_with_gil(1), cell.get)

    done, _ = explored(writes_beside)
    assert done.failure is not None
    assert done.failure.kind == "data race"
    done, text = explored(writes_with_the_gil)
    assert done.failure is None, text
    done, text = explored(writes_with_the_gil, semantics="free")  # no GIL orders the two
    assert done.failure is not None, text
    assert done.failure.kind == "data race"


def test_the_gil_and_a_mutex_in_two_orders_are_a_deadlock(counters: ModuleType) -> None:
    def crossed() -> None:
        counter = counters.LockedCounter()
        both(lambda: counter.add_and_call(int), counter.add_with_gil)

    def in_one_order() -> None:
        counter = counters.LockedCounter()
        both(counter.add_with_gil, counter.add_with_gil)

    done, text = explored(crossed)
    assert done.failure is not None
    assert done.failure.kind == "deadlock", text
    assert "the interpreter's lock" in done.failure.message
    done, text = explored(in_one_order)
    assert done.failure is None, text


def test_memory_that_another_object_gets_is_no_race(counters: ModuleType) -> None:
    def objects_of_each() -> None:
        def work() -> None:
            for _ in range(3):
                counters.Counter().add()
                total.append(1)  # a step, at which others go on

        total: list[int] = []
        both(work, work, work)

    done, text = explored(objects_of_each, semantics="free", executions=500)
    assert done.verdict == "clean", text


def test_calls_of_other_native_modules_are_named() -> None:
    import numpy as np

    def summed() -> None:
        found: list[int] = []
        both(lambda: found.append(int(np.add(1, 2))), lambda: found.append(int(np.add(3, 4))))
        assert sum(found) != 10

    done, text = explored(summed)
    assert done.one_step == ("numpy",)
    assert "each call of native code was one step: numpy" in text


def posting(mailbox: ModuleType, *, publishes: bool) -> Callable[[], None]:
    def test() -> None:
        box = mailbox.Mailbox(publishes)
        found: list[int] = []
        both(lambda: box.put(7), lambda: found.append(box.take()))
        assert found[0] in (-1, 7)

    return test


@pytest.mark.parametrize("semantics", ["gil", "free"])
def test_memory_order_of_cpp_below_python(mailbox: ModuleType, semantics: str) -> None:
    relaxed = posting(mailbox, publishes=False)
    for seed in SEEDS:
        done, _ = explored(relaxed, seed=seed, semantics=semantics, shrinks=False)
        assert done.failure is not None, seed
        assert done.failure.kind == "assertion"
        assert done.failure.mode == "c11"
    done, text = explored(posting(mailbox, publishes=True), semantics=semantics)
    assert done.verdict == "clean", text
    done, text = explored(relaxed, semantics=semantics, mode="sc")
    assert done.verdict == "clean", text


@pytest.mark.parametrize(
    ("line", "atomic", "member"),
    [
        ("self.value += 1", False, "self.value"),
        ("self.value = self.value + step", False, "self.value"),
        ("self.left = self.right", False, ""),
        ("self.items[0] = 1", False, ""),
        ("self.items.size = 1", False, ""),
        ("self.box.put(value)", False, ""),
        ("self.value = other.value", False, ""),
        ("value = 1", False, ""),
        ("return i64_load_acquire(&self.value)", True, "self.value"),
        ("i64_store_release(&self.value, self.step)", True, "self.value"),
        ("self.value.fetch_add(1, memory_order_relaxed)", True, "self.value"),
        ("i64_add(&self.left, i64_load(&self.right))", True, ""),
        ("i64_store_release(&self.items[0], 1)", True, ""),
        ("self.box.put(1)", True, ""),
    ],
)
def test_a_member_is_named_when_its_line_names_no_other(
    line: str, atomic: bool, member: str
) -> None:
    assert member_in(line, atomic=atomic) == member
