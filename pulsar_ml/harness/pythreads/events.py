"""Lets ``sys.monitoring`` announce the instructions of the code under test (3.12 and later)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.pythreads import _fibers

TOOLS = (4, 3, 5)  # 0, 1, 2 are those of debuggers, coverage and profilers


class Events:
    """The events of one session. On 3.11 there are none: each thread has a trace function.

    Raises UsageError when other tools have taken every number.
    """

    def __init__(self) -> None:
        self.monitoring: Any = getattr(sys, "monitoring", None)
        self.watched: list[CodeType] = []
        if self.monitoring is None:
            return
        free = [each for each in TOOLS if self.monitoring.get_tool(each) is None]
        if not free:
            raise UsageError(
                f"other tools use the numbers {', '.join(map(str, TOOLS))} of sys.monitoring; "
                "end one of them before Python threads are explored"
            )
        self.tool = free[0]

    def watch(self, code: CodeType) -> None:
        """Have the instructions of a code object announced, until the session ends."""
        self.watched.append(code)
        self.monitoring.set_local_events(self.tool, code, self.monitoring.events.INSTRUCTION)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Announce functions that begin, and the instructions of those that are watched."""
        if self.monitoring is None:
            yield
            return
        events = self.monitoring.events
        callbacks = {
            events.PY_START: _fibers.on_start,
            events.PY_RESUME: _fibers.on_start,
            events.INSTRUCTION: _fibers.on_instruction,
        }
        self.monitoring.use_tool_id(self.tool, "pulsar_ml")
        for event, callback in callbacks.items():
            self.monitoring.register_callback(self.tool, event, callback)
        self.monitoring.set_events(self.tool, events.PY_START | events.PY_RESUME)
        self.monitoring.restart_events()  # a session before this one switched places off
        try:
            yield
        finally:
            for code in self.watched:
                self.monitoring.set_local_events(self.tool, code, 0)
            self.monitoring.set_events(self.tool, 0)
            for event in callbacks:
                self.monitoring.register_callback(self.tool, event, None)
            self.monitoring.free_tool_id(self.tool)
