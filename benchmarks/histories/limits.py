"""The limits of a check: how much of each is used, as a share of the limit.

``python -m benchmarks.histories.limits`` runs checks that cannot end, each in a process of its own,
with 10,000 steps, 100 MiB or two seconds. A share is the work, the peak of memory above that before
the check, or the time until the answer is there.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize import Options, check
from pulsar_ml.harness.linearize.limits import _memory
from pulsar_ml.harness.models import CasRegister, PriorityQueue, Queue, Stack

STEPS, MEMORY, SECONDS = 10_000, 100 << 20, 2.0
CLIENTS = 90
EVER = 10**9


class Texts:
    """Sets of texts as states; a step is quick."""

    def init(self) -> frozenset[str]:
        return frozenset()

    def step(self, state: frozenset[str], call: Call) -> Iterable[frozenset[str]]:
        return [] if call.name == "stop" else [state | {f"text {call.arguments[0]}"}]


class Slow(CasRegister):
    """A register whose steps sleep."""

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        time.sleep(EVER)
        return super().step(state, call)


def wide(put: str, take: str) -> History:
    """Repeated values by many clients at once, and a value that nobody put in time."""
    draw, operations = random.Random(5), []
    for place in range(CLIENTS):
        begin, end = 3 * draw.random(), 90 + 10 * draw.random()
        operations.append(Operation(place, put, (draw.randint(0, 4),), None, begin, end))
        operations.append(Operation(100 + place, take, (), draw.randint(0, 4), 10 * begin, end))
    operations.append(Operation(0, take, (), 77, 202, 203))
    operations.append(Operation(1, put, (77,), None, 203, 204))
    return history_of(operations)


def writes() -> History:
    some = [Operation(at, "write", (at,), None, 0, 9) for at in range(40)]
    return history_of([*some, Operation(99, "stop", (), None, 10, 11)])


CHECKS: dict[str, Callable[[], tuple[History, Any]]] = {
    "queue": lambda: (wide("enqueue", "dequeue"), Queue()),
    "stack": lambda: (wide("push", "pop"), Stack()),
    "priority queue": lambda: (wide("insert", "delete_min"), PriorityQueue()),
    "Python model": lambda: (writes(), Texts()),
    "Python model that sleeps": lambda: (writes(), Slow()),
}


def share(name: str, limit: str) -> str:
    """Return how much of a limit a check takes, in this process."""
    history, model = CHECKS[name]()
    options = Options(
        most_steps=STEPS if limit == "steps" else EVER,
        memory=MEMORY if limit == "memory" else 1 << 40,
        timeout=SECONDS if limit == "time" else 20.0,
        explain=False,
    )
    before, began = _memory.resident(), time.monotonic()
    verdict = check(history, model, options=options)
    took = time.monotonic() - began
    if not verdict.reason.startswith("out of"):
        return verdict.answer
    if limit == "steps":
        return f"{verdict.steps / STEPS:.3f}"
    if limit == "time":
        return f"{took / SECONDS:.3f}"
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return f"{(int(found[1]) * 1024 - before) / MEMORY:.3f}"


def main() -> None:
    for limit in ("steps", "memory", "time"):
        for name in CHECKS:
            if name == "Python model that sleeps" and limit != "time":
                continue
            program = (
                f"from benchmarks.histories.limits import share; print(share({name!r}, {limit!r}))"
            )
            done = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, env=os.environ
            )
            print(f"{limit:8}{name:28}{done.stdout.strip() or done.stderr}", flush=True)


if __name__ == "__main__":
    main()
