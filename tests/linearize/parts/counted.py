"""A model in Python that counts the questions that it is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from pulsar_ml.harness.histories.history import Call


class Counted:
    """A model that counts the questions to it."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.questions: Counter[object] = Counter()

    def init(self) -> Any:
        return self.model.init()

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        self.questions[state, call] += 1
        return self.model.step(state, call)  # type: ignore[no-any-return]

    def pure(self, call: Call) -> bool:
        return bool(self.model.pure(call))
