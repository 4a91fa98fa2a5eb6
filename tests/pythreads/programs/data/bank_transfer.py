"""Transfers between accounts: the balance is checked before the lock is taken, or inside it."""

from __future__ import annotations

import threading


class Account:
    def __init__(self, balance: int) -> None:
        self.balance = balance
        self.lock = threading.Lock()

    def withdraw_unsafely(self, amount: int) -> bool:
        if self.balance >= amount:
            with self.lock:
                self.balance -= amount
            return True
        return False

    def withdraw(self, amount: int) -> bool:
        with self.lock:
            if self.balance >= amount:
                self.balance -= amount
                return True
            return False


def run(account: Account, method: object) -> None:
    assert callable(method)
    threads = [threading.Thread(target=method, args=(80,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert account.balance >= 0


def test_buggy() -> None:
    account = Account(100)
    run(account, account.withdraw_unsafely)


def test_mended() -> None:
    account = Account(100)
    run(account, account.withdraw)
