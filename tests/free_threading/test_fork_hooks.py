"""Objects that go while the process forks: their locks are held, and their callbacks wait.

A hook of a fork runs Python code between the moment when the gate is shut and the fork. Without a
GIL the child also gives back the objects of the threads that it does not have.
"""

from __future__ import annotations

import subprocess
import sys

from tests import ROOT

PATIENCE = 300.0
SCRIPT = """
import os, sys

kept = []
# Before the package's own hook is there: it runs behind that one.
os.register_at_fork(before=kept.clear)

from pulsar_ml import EntryCacheManager, InflightReadsLimiter, InMemoryDelayedDeliveryTrackerFactory

limiter = InflightReadsLimiter(max_bytes=5)
granted = []
manager = EntryCacheManager(start=True)
kept += [
    manager,
    manager.entry((1, 1), b"x"),
    manager.range_cache("a"),
    limiter.acquire(5, print),
    InMemoryDelayedDeliveryTrackerFactory().new_tracker("a"),
]
assert limiter.acquire(5, granted.append) is None
del manager
child = os.fork()
answers = [permits.amount for permits in granted]
if child == 0:
    os._exit(0 if answers == [5] else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert not kept and answers == [5], (kept, answers)
print(len(os.listdir("/proc/self/task")))
"""


def test_objects_that_go_in_a_hook_of_a_fork() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n", "the manager's thread ended behind the fork"
