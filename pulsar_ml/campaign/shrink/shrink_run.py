"""Makes the failures of a run smaller, many side by side: each result is on disk as soon as it is known, so
that whatever ends this, the next time does the rest.
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
from pulsar_ml.campaign.shrink.shrunk import Shrunk, State, digest_of, read_state
from pulsar_ml.campaign.store.read_run import SIGNATURE, SavedRun
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.input_files import bounded_text


class Place(Protocol):
    """Where failures are made smaller. ``shrink`` is called from ``slots`` threads at once.

    After ``stop`` it returns soon, and what it returns does not count.
    """

    @property
    def slots(self) -> int: ...
    def shrink(self, task: Task) -> Shrunk: ...
    def stop(self) -> None: ...


class Processes:
    """A process on this machine for each failure."""

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
    """The failure of one signature, and what was tried on it before."""

    signature: str
    suite: str
    invariant: str
    record: str
    state: State | None = None


def witnesses(run: SavedRun) -> list[Witness]:
    """One for each signature that has a record, by suite and signature.

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


def task_of(witness: Witness, *, registry: str, module: str, executions: int) -> Task:
    """What to do for a witness; what was reached before is where it begins."""
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
    )


def shrink_all(
    store: RunStore,
    wanted: Iterable[Witness],
    place: Place,
    task: Callable[[Witness], Task],
    *,
    stopped: Callable[[], bool] = lambda: False,
    on_done: Callable[[Witness], object] = lambda witness: None,
) -> bool:
    """Tries what is wanted; ``on_done`` gets each witness with its new state, which is on disk then.

    False when it was stopped before the end: what runs then is ended and not kept. Raises what the place
    raises.
    """
    waiting = deque(wanted)
    running: dict[Future[Shrunk], tuple[Witness, Task]] = {}
    with ThreadPoolExecutor(place.slots, thread_name_prefix="shrink") as threads:
        try:
            while waiting or running:
                if stopped():
                    return False
                while waiting and len(running) < place.slots:
                    witness = waiting.popleft()
                    what = task(witness)
                    running[threads.submit(place.shrink, what)] = witness, what
                finished, _ = wait(running, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for future in finished:
                    witness, what = running.pop(future)
                    state = State(digest_of(what.record), what.executions, future.result())
                    if (
                        not what.start or state.shrunk.record
                    ):  # what there is already is not given up
                        store.write_shrunk(witness.signature, state)
                    on_done(replace(witness, state=state))
            return True
        finally:
            if running:
                place.stop()
