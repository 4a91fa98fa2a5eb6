"""A model of an account: deposits, withdrawals that may be refused, and its balance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pulsar_ml.harness import Call


class Account:
    """deposit(amount), withdraw(amount) -> whether there was enough, balance() -> amount."""

    description = "an account"

    def init(self) -> int:
        return 0

    def step(self, state: int, call: Call) -> Iterable[int]:
        """Every state to which the call, with the result it has, may lead."""
        if call.name == "balance":
            return [state] if call.pending or call.result == state else []
        amount: Any = call.arguments[0]
        if call.name == "deposit":
            return [state + amount]
        after = state - amount if state >= amount else state
        return [after] if call.pending or call.result == (state >= amount) else []

    def pure(self, call: Call) -> bool:
        """Never changes the state, wherever it is legal."""
        return call.name == "balance" or call.result is False
