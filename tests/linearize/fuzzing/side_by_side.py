"""Lets worker processes search small histories, which this process would answer before them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from pulsar_ml.harness.linearize import Options
from pulsar_ml.harness.linearize.cells._parts import Parts
from pulsar_ml.harness.linearize.check import Check, Finding
from pulsar_ml.harness.linearize.parts import rounds, workers

CONFIGURATIONS = (
    Options(workers=2),
    Options(workers=2, natively=False, monitors=False),
    Options(workers=3, natively=False, monitors=False, partition=False),
)


class AtOnce(Check):
    """A check that gives native parts to workers without a search of its own."""

    def by_parts(self, native: Parts, monitor: str) -> Finding | None:
        if native.parts > 1 and self.searches.options.partition:
            return self.of_parts(self.native_parts(native), native)
        return super().by_parts(native, monitor)


@contextmanager
def workers_at_once() -> Iterator[list[int]]:
    """Let workers begin before anything is searched; yields the list of their processes."""
    began: list[int] = []

    class Counted(workers.Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            began.append(self.process.pid or 0)

    check = sys.modules["pulsar_ml.harness.linearize.check"]
    with ExitStack() as changes:
        for place, name, value in (
            (workers, "Worker", Counted),
            (check, "Check", AtOnce),
            (check, "FEW_STEPS", 0),
            (check, "GUIDED_STEPS", 0),
            (rounds, "SECONDS_ALONE", 0.0),
        ):
            changes.enter_context(mock.patch.object(place, name, value))
        yield began
