"""A task that waits for another task of the same pool: with too few workers nobody runs it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor


def run(workers: int) -> None:
    with ThreadPoolExecutor(workers) as pool:

        def parent(number: int) -> int:
            return pool.submit(lambda: number + 1).result()

        futures = [pool.submit(parent, number) for number in range(2)]
        assert [future.result() for future in futures] == [1, 2]


def test_buggy() -> None:
    run(workers=2)


def test_mended() -> None:
    run(workers=3)
