"""The interpreter's own rules within executions: recursion, tracing, the collector, leaks."""

from __future__ import annotations

import contextvars
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import psutil
import pytest

from pulsar_ml.harness.pythreads.check import explore_python, program_of, python_subject
from pulsar_ml.harness.pythreads.session import session


def started(*targets: Callable[[], object]) -> None:
    threads = [threading.Thread(target=target) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Box:
    def __init__(self) -> None:
        self.value = 0


def deep() -> None:
    """Recursion up to the interpreter's limit, with a step in each call, in two threads."""
    box = Box()
    depths: list[int] = []

    def fall(depth: int) -> int:
        box.value = depth
        return fall(depth + 1)

    def work() -> None:
        try:
            fall(0)
        except RecursionError:
            depths.append(box.value)

    started(work, work)
    assert len(depths) == 2
    assert min(depths) > sys.getrecursionlimit() // 2


def exhausts_the_stack() -> None:
    def nest() -> None:
        found: list[Any] = []
        for _ in range(300_000):
            found = [found]
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(10**9)
        try:
            repr(found)
        finally:
            sys.setrecursionlimit(limit)

    started(nest)


def generators() -> None:
    """Generators and exceptions that are under way while other threads run."""
    box = Box()
    found: list[int] = []

    def numbers() -> Iterator[int]:
        try:
            for number in range(3):
                box.value += 1
                yield number
        finally:
            found.append(-1)

    def consume() -> None:
        for number in numbers():
            try:
                raise KeyError(number)
            except KeyError as error:
                box.value += 1
                found.append(error.args[0])
                assert sys.exc_info()[1] is error
        assert sys.exc_info()[1] is None

    started(consume, consume)
    assert sorted(found) == [-1, -1, 0, 0, 1, 1, 2, 2]


def contexts() -> None:
    """Each thread has its own context and its own thread-local values at each switch."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    local = threading.local()
    box = Box()

    def work(number: int) -> Callable[[], None]:
        def run() -> None:
            variable.set(number)
            local.number = number
            box.value += 1
            assert (variable.get(), local.number) == (number, number)

        return run

    started(work(1), work(2))
    assert variable.get() == 0
    assert not hasattr(local, "number")


def named_contexts() -> None:
    """A thread has the context of its argument (3.14), else one as the interpreter is set up."""
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)
    variable.set(1)
    named: dict[str, Any] = {}
    if sys.version_info >= (3, 14):
        named["context"] = contextvars.copy_context()
    variable.set(2)
    inherited = 2 if getattr(sys.flags, "thread_inherit_context", 0) else 0
    found: list[int] = []
    for options in (dict[str, Any](), named):
        thread = threading.Thread(target=lambda: found.append(variable.get()), **options)
        thread.start()
        thread.join()
    assert found == [inherited, 1 if named else inherited]
    assert variable.get() == 2


def names_and_owners() -> None:
    """A new name of a thread is not the system's, and others see who holds a reentrant lock."""
    lock: Any = threading.RLock()
    path = Path(f"/proc/self/task/{threading.get_native_id()}/comm")
    before, seen = path.read_text(), []

    def look() -> None:
        threading.current_thread().name = "of the test"
        seen.append(lock.locked() if sys.version_info >= (3, 14) else True)

    with lock:
        started(look)
    assert seen == [True]
    assert sys.version_info < (3, 14) or not lock.locked()
    assert path.read_text() == before


class Finalised:
    ended = 0

    def __init__(self, box: Box) -> None:
        self.box = box
        self.itself = self  # a cycle: only the collector frees it

    def __del__(self) -> None:
        self.box.value += 1
        Finalised.ended += 1


def collects() -> None:
    """The collector runs within an execution, and finalizers make steps."""
    box = Box()
    gone: list[object] = []
    referred = weakref.ref(Finalised(box), gone.append)

    def work() -> None:
        box.value += 1
        Finalised(box)
        gc.collect()

    started(work, work)
    assert referred is not None


@pytest.mark.parametrize(
    "test", [deep, generators, contexts, named_contexts, names_and_owners, collects]
)
def test_the_interpreter_keeps_its_rules(test: Callable[[], None]) -> None:
    executions = 10 if test is deep else 200
    done, text = explore_python(test, isolated=False, executions=executions)
    assert done.failure is None, text


def test_native_recursion_that_uses_up_the_stack_is_named() -> None:
    done, text = explore_python(exhausts_the_stack, executions=2)
    assert done.failure is not None
    if sys.version_info >= (3, 14):
        assert not done.failure.ended_process, text  # the interpreter knows where the stack ends
    if sys.version_info >= (3, 12) and not done.failure.ended_process:
        assert "RecursionError" in text  # the interpreter counts nested calls in C
        return
    assert "native code used up the stack of a Python thread" in text


def test_a_trace_function_of_the_caller_stays() -> None:
    seen: list[str] = []

    def tracer(frame: FrameType, event: str, argument: object) -> Any:
        seen.append(frame.f_code.co_name)
        return None

    def traced_later() -> None:
        """Called behind the executions."""

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        done, text = explore_python(generators, isolated=False, executions=50)
        assert sys.gettrace() is tracer
        traced_later()
    finally:
        sys.settrace(before)
    assert done.failure is None, text
    assert "traced_later" in seen
    assert "numbers" not in seen  # no thread of an execution is traced


def test_other_tools_of_monitoring_stay() -> None:
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:  # before 3.12
        return
    lines: list[str] = []
    monitoring.use_tool_id(1, "coverage of the test")
    try:
        monitoring.register_callback(
            1, monitoring.events.LINE, lambda code, line: lines.append(code.co_name)
        )
        monitoring.set_events(1, monitoring.events.LINE)
        done, text = explore_python(generators, isolated=False, executions=50)
        assert done.failure is None, text
        assert monitoring.get_events(1) == monitoring.events.LINE
    finally:
        monitoring.set_events(1, 0)
        monitoring.free_tool_id(1)
    assert "consume" in lines


def test_thousands_of_executions_leave_no_frames_states_or_memory() -> None:
    from pulsar_ml.harness.engine import Explorer

    process = psutil.Process()
    states = len(sys._current_frames())
    with session():
        subject = python_subject(generators, "generators")
        explorer = Explorer(
            subject, program_of(subject), mode="sc", races=False, leaks=False, strategy="random"
        )
        assert explorer.run(0, 1000) == 1000
        gc.collect()
        objects, memory = len(gc.get_objects()), process.memory_info().rss
        assert explorer.run(1000, 3000) == 3000
        gc.collect()
        frames = [each for each in gc.get_objects() if isinstance(each, FrameType)]
        assert len(gc.get_objects()) < objects + 100
        assert process.memory_info().rss < memory + (4 << 20)
        assert not [each for each in frames if each.f_code.co_name in ("consume", "numbers")]
    assert len(sys._current_frames()) == states
