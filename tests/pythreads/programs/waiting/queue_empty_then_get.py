"""Workers that end when the queue is empty: another one takes the last job behind the check."""

from __future__ import annotations

import queue
import threading


def work_unsafely(jobs: queue.Queue[int], results: list[int]) -> None:
    while not jobs.empty():
        results.append(jobs.get())


def work(jobs: queue.Queue[int], results: list[int]) -> None:
    while True:
        try:
            job = jobs.get_nowait()
        except queue.Empty:
            return
        results.append(job)


def run(safe: bool) -> None:
    jobs: queue.Queue[int] = queue.Queue()
    results: list[int] = []
    for job in (1, 2, 3):
        jobs.put(job)
    target = work if safe else work_unsafely
    threads = [threading.Thread(target=target, args=(jobs, results)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [1, 2, 3]


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
