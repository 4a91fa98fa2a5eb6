"""A judge from a plain Python model, which ``harness/models/model.py`` describes."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.models.model import describe_call


class PlainJudge(ModelJudge):
    """Judges executions and recorded runs by the model that ``factory()`` returns.

    Pass it to :func:`interleave` or :func:`explore` as ``judge``. The model has ``init()`` and
    ``step(state, call)``; the result of a call is its status and its four words, ``(status, (first,
    second, third, fourth))``. The model's answers are remembered for all programs. Use a judge in
    one thread at a time.
    """

    def __init__(self, factory: Callable[[], Any]) -> None:
        super().__init__(factory)

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        return history.signatures

    def model_of(self, history: History, threads: int, fresh: bool, scarce: bool) -> Plain:
        return Plain(self.factory)


class Plain:
    """The model with the attributes that a judge needs besides its own."""

    spans: frozenset[str] = frozenset()  # no call is modelled as two
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
