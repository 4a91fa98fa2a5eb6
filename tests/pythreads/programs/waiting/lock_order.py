"""Two locks that two threads take in different orders, or in one order."""

from __future__ import annotations

import threading


class Account:
    def __init__(self, number: int, balance: int) -> None:
        self.number = number
        self.balance = balance
        self.lock = threading.Lock()


def transfer_unsafely(source: Account, target: Account, amount: int) -> None:
    with source.lock, target.lock:
        source.balance -= amount
        target.balance += amount


def transfer(source: Account, target: Account, amount: int) -> None:
    first, second = sorted((source, target), key=lambda account: account.number)
    with first.lock, second.lock:
        source.balance -= amount
        target.balance += amount


def run(safe: bool) -> None:
    a, b = Account(1, 100), Account(2, 100)
    move = transfer if safe else transfer_unsafely
    threads = [
        threading.Thread(target=move, args=(a, b, 10)),
        threading.Thread(target=move, args=(b, a, 20)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert a.balance + b.balance == 200


def test_buggy() -> None:
    run(safe=False)


def test_mended() -> None:
    run(safe=True)
