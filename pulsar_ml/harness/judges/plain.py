"""A judge from a model that is a plain Python object, as :mod:`pulsar_ml.harness.models.model` describes it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.models.model import describe_call


class PlainJudge(ModelJudge):
    """Refuses what the model that ``factory()`` makes cannot answer, of executions and of recorded runs.

    The result of a call is its status and its four words, ``(status, (first, second, third, fourth))``. What
    the model said before, and whole histories, are remembered for all programs. One thread at a time.
    """

    def __init__(self, factory: Callable[[], Any]) -> None:
        super().__init__(factory)

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        return history.signatures

    def model_of(self, history: History, threads: int, fresh: bool) -> Plain:
        return Plain(self.factory)


class Plain:
    """The model with what a judge asks of one besides; all else is the model's own."""

    spans: frozenset[str] = frozenset()  # each call takes effect at one moment
    foresees = False

    def __init__(self, factory: Callable[[], Any]) -> None:
        self.factory = factory
        self.model = factory()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def anew(self) -> Plain:
        return Plain(self.factory)

    def describe(self, call: Any) -> str:
        return describe_call(self.model, call)
