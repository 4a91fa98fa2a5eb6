"""Shrinks the failures of a run, many at once.

Each result is written to disk at once, so that an interrupted command continues where it ended.
"""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from threading import Lock
from typing import Protocol

from pulsar_ml.campaign.run.runner import POLL_SECONDS
from pulsar_ml.campaign.shrink.shrinking import Task, apart
from pulsar_ml.campaign.shrink.shrunk import ShrinkState, Shrunk, digest_of, read_state
from pulsar_ml.campaign.store.read_run import SIGNATURE, SavedRun
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.input_files import bounded_text


class Shrinker(Protocol):
    """Runs shrinking tasks. ``shrink`` is called from ``slots`` threads at once.

    After ``stop`` it returns soon, and its result does not count.
    """

    @property
    def slots(self) -> int: ...
    def shrink(self, task: Task) -> Shrunk: ...
    def stop(self) -> None: ...


class Processes:
    """Shrinks each failure in a process of its own on this machine."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = Lock()
        self._stopped = False

    def shrink(self, task: Task) -> Shrunk:
        mine: list[subprocess.Popen[str]] = []

        def started(process: subprocess.Popen[str]) -> None:
            mine.append(process)
            with self._lock:
                self._running.add(process)
                if self._stopped:
                    process.kill()

        try:
            return apart(task, started)
        finally:
            with self._lock:
                self._running.difference_update(mine)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


@dataclass(frozen=True, slots=True)
class Witness:
    """The failure of one signature, and the state of its shrinking."""

    signature: str
    suite: str
    invariant: str
    record: str
    state: ShrinkState | None = None


def witnesses(run: SavedRun) -> list[Witness]:
    """Return one witness for each signature with a record, by suite and signature.

    BadRecordError for damage, UsageError when a file cannot be read.
    """
    found: dict[str, Witness] = {}
    for batch in run.violations():
        firsts = batch.select(["signature", "suite", "invariant"]).group_by(
            ["signature", "suite", "invariant"]
        )
        for line in firsts.aggregate([]).to_pylist():
            signature = line["signature"]
            if signature in found or not SIGNATURE.fullmatch(signature):
                continue
            path = run.directory / "records" / f"{signature}.json"
            if path.is_file():
                record = bounded_text(path, "the record").rstrip("\n")
                state = read_state(run.directory, signature)
                found[signature] = Witness(
                    signature, line["suite"], line["invariant"], record, state
                )
    return sorted(found.values(), key=lambda one: (one.suite, one.signature))


def task_of(
    witness: Witness, *, registry: str, module: str, executions: int, leaks: bool = True
) -> Task:
    """Make the task of a witness; it starts from the smallest failure so far."""
    start = ""
    if witness.state is not None and witness.state.of == digest_of(witness.record):
        start = witness.state.shrunk.record
    return Task(
        suite=witness.suite,
        registry=registry,
        record=witness.record,
        start=start,
        executions=executions,
        module=module,
        leaks=leaks,
    )


def shrink_all(
    store: RunStore,
    wanted: Iterable[Witness],
    shrinker: Shrinker,
    task: Callable[[Witness], Task],
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_done: Callable[[Witness], object] = lambda witness: None,
) -> bool:
    """Run the tasks; ``on_done`` gets each witness with its new state, which is then on disk.

    Returns False when it was stopped before the end: running tasks are then ended without a result.
    Raises what the shrinker raises.
    """
    waiting = deque(wanted)
    running: dict[Future[Shrunk], tuple[Witness, Task]] = {}
    with ThreadPoolExecutor(shrinker.slots, thread_name_prefix="shrink") as threads:
        try:
            while waiting or running:
                if stopped():
                    return False
                while waiting and len(running) < shrinker.slots:
                    witness = waiting.popleft()
                    what = task(witness)
                    running[threads.submit(shrinker.shrink, what)] = witness, what
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    witness, what = running.pop(future)
                    state = ShrinkState(digest_of(what.record), what.executions, future.result())
                    if not what.start or state.shrunk.record:  # an earlier result is kept
                        store.write_shrunk(witness.signature, state)
                    on_done(replace(witness, state=state))
            return True
        finally:
            if running:
                shrinker.stop()
