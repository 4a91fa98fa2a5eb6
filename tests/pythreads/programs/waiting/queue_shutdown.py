"""Workers that end at one sentinel: one sentinel for two workers, or one each."""

from __future__ import annotations

import queue
import threading


def run(sentinels: int) -> None:
    jobs: queue.Queue[int | None] = queue.Queue()
    results: queue.SimpleQueue[int] = queue.SimpleQueue()

    def work() -> None:
        while (job := jobs.get()) is not None:
            results.put(job * job)

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for job in (1, 2):
        jobs.put(job)
    for _ in range(sentinels):
        jobs.put(None)
    for worker in workers:
        worker.join()
    assert sorted(results.get_nowait() for _ in range(2)) == [1, 4]


def test_buggy() -> None:
    run(sentinels=1)


def test_mended() -> None:
    run(sentinels=2)
