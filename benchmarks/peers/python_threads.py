"""One Python program under another tool: prints executions and the processor time that they took.

Run as a script, by an interpreter that has the tool: ``frontrun`` (which needs its own command in
front of the interpreter) or ``interleave_test`` (Python 3.12 and later). It imports nothing of this
project.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from typing import Any

THREADS = 3


class Counter:
    """Each thread reads and writes the value five times."""

    def __init__(self) -> None:
        self.value = 0

    def work(self) -> None:
        self.value += 1
        self.value += 1
        self.value += 1
        self.value += 1
        self.value += 1


def counter_test() -> None:
    counter = Counter()
    threads = [threading.Thread(target=counter.work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.value <= 5 * THREADS


def frontrun(executions: int) -> int:
    tool: Any = importlib.import_module("frontrun.bytecode")
    done = tool.explore_random(
        setup=Counter,
        threads=[Counter.work] * THREADS,
        invariant=lambda counter: counter.value <= 5 * THREADS,
        max_attempts=executions,
        seed=1,
    )
    return int(done.num_explored)


def interleave_test(executions: int) -> int:
    tool: Any = importlib.import_module("interleave_test")
    return int(tool.explore(counter_test, iterations=executions, seed=1).schedules_run)


if __name__ == "__main__":
    name, wanted = sys.argv[1], int(sys.argv[2])
    explored = {"frontrun": frontrun, "interleave_test": interleave_test}[name]
    explored(3)  # warm
    started = time.process_time()
    count = explored(wanted)
    print(json.dumps({"executions": count, "seconds": time.process_time() - started}))
