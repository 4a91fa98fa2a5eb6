"""A decorator that remembers results: two threads call the function for one argument."""

from __future__ import annotations

import threading
from collections.abc import Callable


def memoise(function: Callable[[int], int]) -> Callable[[int], int]:
    results: dict[int, int] = {}

    def remembered(argument: int) -> int:
        if argument not in results:
            results[argument] = function(argument)
        return results[argument]

    return remembered


def memoise_locked(function: Callable[[int], int]) -> Callable[[int], int]:
    results: dict[int, int] = {}
    lock = threading.Lock()

    def remembered(argument: int) -> int:
        with lock:
            if argument not in results:
                results[argument] = function(argument)
            return results[argument]

    return remembered


def run(decorator: Callable[[Callable[[int], int]], Callable[[int], int]]) -> None:
    orders: list[int] = []

    @decorator
    def order(number: int) -> int:
        orders.append(number)
        return 10 * number

    threads = [threading.Thread(target=order, args=(number,)) for number in (1, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(orders) == [1, 2], f"ordered: {sorted(orders)}"


def test_buggy() -> None:
    run(memoise)


def test_mended() -> None:
    run(memoise_locked)
