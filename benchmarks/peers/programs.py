"""A program of tests/pythreads under another tool: prints executions and processor time as JSON.

Usage: ``programs.py TOOL FILE FUNCTION SEED EXECUTIONS``. Run by an interpreter that has the tool;
it imports nothing of this project. It counts until the tool reports a failure, or the executions
are over.

``interleave_test`` takes the function as it is. ``frontrun`` takes functions that are threads from
the beginning, so each thread of the program waits there until the program starts it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

Test = Callable[[], object]
MOST_THREADS = 8


class Slot:
    """A thread of frontrun that waits for the function that it runs."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.ended = threading.Event()
        self.function: Test | None = None

    def run(self) -> None:
        self.started.wait()
        try:
            if self.function is not None:
                self.function()
        finally:
            self.ended.set()


class State:
    """One execution: its slots, and how many of them are taken."""

    current: State

    def __init__(self, count: int) -> None:
        self.slots = [Slot() for _ in range(count)]
        self.taken = 0
        State.current = self


class StartedThread:
    """Stands for threading.Thread."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., object] | None = None,
        name: str | None = None,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        daemon: bool | None = None,
    ) -> None:
        self.target, self.args, self.kwargs = target, args, kwargs or {}

    def start(self) -> None:
        state = State.current
        self.slot = state.slots[state.taken]
        state.taken += 1
        self.slot.function = self.call
        self.slot.started.set()

    def call(self) -> None:
        if self.target is not None:
            self.target(*self.args, **self.kwargs)

    def join(self, timeout: float | None = None) -> None:
        self.slot.ended.wait()


class Threading:
    """Stands for the module threading in the program; frontrun keeps the real one."""

    Thread = StartedThread

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


def count_threads(test: Test) -> int:
    """Call the function once with real threads, and return how many it starts."""
    before, starts = threading.Thread.start, []

    def start(thread: threading.Thread) -> None:
        thread.daemon = True  # a bug may leave it waiting
        starts.append(thread)
        before(thread)

    threading.Thread.start = start  # type: ignore[method-assign, assignment]
    try:
        caller = threading.Thread(target=test)
        caller.start()
        caller.join(2)
    finally:
        threading.Thread.start = before  # type: ignore[method-assign]
    return len(starts) - 1


def frontrun(test: Test, seed: int, executions: int) -> tuple[int, bool]:
    tool: Any = importlib.import_module("frontrun.bytecode")
    count = count_threads(test)
    for function in (Slot.run, *vars(StartedThread).values(), Threading.__getattr__):
        if isinstance(function, FunctionType):  # frontrun passes over code of the library
            function.__code__ = function.__code__.replace(co_filename=os.__file__)
    for module in (test.__module__, "concurrent.futures.thread"):
        if module in sys.modules:
            vars(sys.modules[module])["threading"] = Threading()

    def main(state: State) -> None:
        test()

    def slot(number: int) -> Callable[[State], None]:
        return lambda state: state.slots[number].run()

    found = tool.explore_random(
        setup=lambda: State(count),
        threads=[main, *[slot(number) for number in range(count)]],
        invariant=lambda state: True,
        max_attempts=executions,
        seed=seed,
        reproduce_on_failure=0,
        clock="virtual",
    )
    return int(found.num_explored), found.property_holds is False


def interleave_test(test: Test, seed: int, executions: int) -> tuple[int, bool]:
    tool: Any = importlib.import_module("interleave_test")
    found = tool.explore(test, iterations=executions, seed=seed, raise_on_failure=False)
    return int(found.schedules_run), found.failure is not None


def load(file: str, function: str) -> Test:
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    test: Test = getattr(module, function)
    return test


if __name__ == "__main__":
    tool_name, path, name, first_seed, most = sys.argv[1:]
    explored = {"frontrun": frontrun, "interleave_test": interleave_test}[tool_name]
    loaded = load(path, name)
    began = time.process_time()
    done, failed = explored(loaded, int(first_seed), int(most))
    seconds = time.process_time() - began
    print(json.dumps({"executions": done, "failed": failed, "seconds": seconds}), flush=True)
    os._exit(0)  # threads that wait for ever are left
