"""Announced instructions: where their operands are, and other tools beside a session."""

from __future__ import annotations

import dis
import gc
import importlib
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.pythreads.check import explore_python
from pulsar_ml.harness.pythreads.depths import reached_depths
from pulsar_ml.harness.pythreads.events import TOOLS

MODULES = ("argparse", "dataclasses", "inspect", "queue", "tarfile", "threading", "typing")
MANY = "".join(f"    box.name{number} = {number}\n" for number in range(300))


class Box:
    def __init__(self) -> None:
        self.value = 0


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


@pytest.mark.parametrize("name", MODULES)
def test_each_instruction_has_one_depth(name: str) -> None:
    source = inspect.getsource(importlib.import_module(name))
    for code in code_objects(compile(source, name, "exec")):
        depths = reached_depths(code).values()
        assert min(depths) == 0
        assert max(depths) <= code.co_stacksize


def test_two_depths_of_one_instruction_are_an_error() -> None:
    def loop(numbers: list[int]) -> None:
        for _ in numbers:
            loop(numbers)

    code = loop.__code__
    drops = [each for each in dis.get_instructions(code) if each.opname == "POP_TOP"]
    changed = bytearray(code.co_code)
    changed[drops[0].offset] = dis.opmap["NOP"]
    with pytest.raises(ValueError, match="is reached with"):
        reached_depths(code.replace(co_code=bytes(changed)))


def among_values(box: Box) -> object:
    return 1, [2, (3, box.value)]


def in_a_handler(box: Box) -> object:
    for _ in range(1):
        try:
            raise KeyError
        except KeyError:
            return 1, box.value
    return None


def behind_a_with(box: Box) -> object:
    lock = threading.Lock()
    try:
        with lock:
            raise KeyError
    except KeyError:
        with lock:
            pass
    return box.value


def in_a_generator(box: Box) -> object:
    return sum(1 + box.value for _ in range(2))


def in_a_comprehension(box: Box) -> object:
    return [[1, box.value] for _ in range(2)]


def with_keywords(box: Box) -> object:
    return max(1, getattr(box, "value"), key=abs)  # noqa: B009


@pytest.mark.parametrize(
    "reads",
    [among_values, in_a_handler, behind_a_with, in_a_generator, in_a_comprehension, with_keywords],
)
def test_an_attribute_is_found_below_other_values(reads: Callable[[Box], object]) -> None:
    def run() -> None:
        box = Box()
        thread = threading.Thread(target=lambda: setattr(box, "value", 1))
        thread.start()
        assert reads(box)
        thread.join()

    done, _ = explore_python(run, isolated=False, executions=200, semantics="free", shrinks=False)
    assert done.failure is not None
    assert "Box.value" in done.failure.message


def test_a_function_of_many_names() -> None:
    found: dict[str, Any] = {}
    exec(compile(f"def change(box):\n{MANY}    box.value = 1\n", "many", "exec"), found)

    def run() -> None:
        box = Box()
        thread = threading.Thread(target=found["change"], args=(box,))
        thread.start()
        assert box.value in (0, 1)
        thread.join()

    done, _ = explore_python(
        run, isolated=False, executions=200, semantics="free", strategy="random", shrinks=False
    )
    assert done.failure is not None
    assert "Box.value" in done.failure.message


def test_slices_are_steps() -> None:
    def torn() -> None:
        numbers = [0, 0]

        def change() -> None:
            numbers[0:1] = [1]
            numbers[1:2] = [1]

        thread = threading.Thread(target=change)
        thread.start()
        assert numbers[0:2] in ([0, 0], [1, 1])
        thread.join()

    done, _ = explore_python(torn, isolated=False, executions=500, shrinks=False)
    assert done.failure is not None
    assert done.failure.kind == "assertion"


def test_a_later_session_has_the_steps_of_the_first() -> None:
    def run() -> None:
        box = Box()
        threads = [threading.Thread(target=among_values, args=(box,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    first, _ = explore_python(run, isolated=False, executions=10)
    second, _ = explore_python(run, isolated=False, executions=10)
    assert first.statistics["steps"] == second.statistics["steps"] > 0


def test_other_threads_of_the_process_are_left_alone() -> None:
    box, stopped, counted = Box(), [False], [0]

    def work() -> None:
        while not stopped[0]:
            box.value += 1
            counted[0] += 1

    def run() -> None:
        thread = threading.Thread(target=among_values, args=(Box(),))
        thread.start()
        thread.join()

    beside = threading.Thread(target=work)
    beside.start()
    try:
        done, text = explore_python(run, isolated=False, executions=500)
    finally:
        stopped[0] = True
        beside.join()
    assert done.verdict == "clean", text
    assert box.value == counted[0] > 0


def test_waits_of_other_threads_of_the_process_are_real() -> None:
    lock, changed, stopped = threading.Lock(), threading.Condition(), [False]
    waits = [0]

    def wait() -> None:
        while not stopped[0]:
            with lock, changed:
                changed.wait(0)
            waits[0] += 1

    def run() -> None:
        inner = threading.RLock()

        def use() -> None:
            with inner:
                among_values(Box())

        threads = [threading.Thread(target=use) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    interval = sys.getswitchinterval()
    beside = threading.Thread(target=wait)
    beside.start()
    sys.setswitchinterval(1e-5)  # threads of the system take turns within executions
    try:
        done, text = explore_python(run, isolated=False, executions=500)
    finally:
        sys.setswitchinterval(interval)
        stopped[0] = True
        beside.join()
    assert done.verdict == "clean", text
    assert waits[0] > 0


class Taken:
    """Stands for a sys.monitoring whose numbers are all in use."""

    def get_tool(self, number: int) -> str:
        return f"tool {number}"


def test_numbers_of_other_tools_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "monitoring", Taken(), raising=False)
        with pytest.raises(UsageError, match="end one of them"):
            explore_python(lambda: among_values(Box()), isolated=False, executions=1)
    assert gc.isenabled()
    explore_python(lambda: among_values(Box()), isolated=False, executions=1)
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None:
        assert [monitoring.get_tool(number) for number in TOOLS] == [None] * len(TOOLS)
