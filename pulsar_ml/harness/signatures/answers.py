"""A judge for generated subjects: their answers as the values of Python that a model expects."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import Call, History
from pulsar_ml.harness.judges.judge import OUT_OF_MEMORY, ModelJudge
from pulsar_ml.harness.linearize import ANSWERS, ILLEGAL, LEGAL, ModelChecker
from pulsar_ml.harness.linearize.searches import PROGRAM_ORDER
from pulsar_ml.harness.models.model import describe_call
from pulsar_ml.harness.subjects.recipe import Recipe

# The status of an answer says what its words are; from FIRST_TUPLE on, how many there are.
NOTHING, WORD, FLAG, FIRST_TUPLE = range(4)
CRITERIA = ("linearizable", "sequential")
STALE = (
    "these answers are legal if a read may be stale, which mode='sc' excludes and "
    "criterion='sequential' allows"
)
OF_CALL = frozenset({"partition", "pure", "ends", "over", "unit", "resets"})
PUTS = frozenset({"push", "put", "offer", "enqueue"})
TAKES = frozenset({"pop", "take", "poll", "get", "dequeue"})


def value_of(answer: tuple[int, tuple[int, ...]], meanings: Mapping[Any, Any] | None) -> object:
    """The Python value of an answer: None, an integer, a truth value, or a tuple.

    ``meanings`` maps what the function returned to another value. A result that is not among them
    gives way to the values that the call has written.
    """
    status, words = answer
    if status == NOTHING:
        value: Any = None
    elif status == FLAG:
        value = bool(words[0])
    elif status == WORD:
        value = words[0]
    else:
        value = tuple(words[: status - FIRST_TUPLE])
    if meanings is None:
        return value
    returned, *written = value if isinstance(value, tuple) else (value,)
    if returned in meanings:
        return meanings[returned]
    if not written:
        return returned
    return written[0] if len(written) == 1 else tuple(written)


def answer_text(status: int, word: int) -> str:
    """Describe an answer by its status and its first word."""
    if status < FIRST_TUPLE:
        return str(value_of((status, (word,)), None))
    return f"({word}, ...)"


def name_in(model: Any, operation: str) -> str:
    """The model's name of an operation: a queue and a stack know theirs by several names."""
    known = getattr(model, "operations", {})
    if operation not in known and hasattr(model, "put") and hasattr(model, "take"):
        if operation in PUTS:
            return str(model.put)
        if operation in TAKES:
            return str(model.take)
    return operation


class AnswersModel:
    """A model that sees the answers of generated operations as Python values.

    The put of a queue or stack that answers False was refused, and changes nothing.
    """

    spans: frozenset[str] = frozenset()  # no call is modelled as two
    foresees = False

    def __init__(
        self, factory: Callable[[], Any], meanings: Mapping[str, Mapping[Any, Any] | None]
    ) -> None:
        self.factory = factory
        self.meanings = meanings
        self.model = factory()
        self.names = {name: name_in(self.model, name) for name in meanings}

    def plain(self, call: Call) -> Call:
        result = call.result
        if not call.pending:
            result = value_of(call.result, self.meanings[call.name])  # type: ignore[arg-type]
        return Call(self.names[call.name], call.arguments, result, call.thread)

    def refused(self, call: Call) -> bool:
        return call.result is False and call.name == getattr(self.model, "put", "")

    def init(self) -> Any:
        return self.model.init()

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        plain = self.plain(call)
        return (state,) if self.refused(plain) else self.model.step(state, plain)

    def describe(self, call: Call) -> str:
        plain = self.plain(call)
        shown = Call(call.name, plain.arguments, plain.result, plain.thread)
        return describe_call(self.model, shown)

    def __getattr__(self, name: str) -> Any:
        if name in ("model", "monitor"):  # a monitor would read the answers as they are
            raise AttributeError(name)
        value = getattr(self.model, name)
        if name == "leads":
            return lambda state, call: value(state, self.plain(call))
        if name not in OF_CALL:
            return value

        def of_plain(call: Call) -> Any:
            plain = self.plain(call)
            if name == "pure" and self.refused(plain):
                return True
            return value(plain)

        return of_plain

    def anew(self) -> AnswersModel:
        return AnswersModel(self.factory, self.meanings)


class AnswersJudge(ModelJudge):
    """Judges executions of a generated subject by a model of Python values.

    ``criterion`` is "linearizable", or "sequential": then calls of different threads may take
    effect in any order, which stale reads of weak memory need.
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        meanings: Mapping[str, Mapping[Any, Any] | None],
        criterion: str = "linearizable",
    ) -> None:
        super().__init__(factory)
        self.meanings = meanings
        self.criterion = criterion
        self.recipe: Recipe | None = None  # of the subject, with this judge's model

    def searched(self, checker: ModelChecker, records: NDArray[np.void], tried: bool) -> str:
        answer = super().searched(checker, records, tried)
        if answer == ILLEGAL and self.criterion == "sequential":
            return self.in_program_order(checker, records)
        return answer

    def in_program_order(self, checker: ModelChecker, records: NDArray[np.void]) -> str:
        """The answer when only the order of each thread's own calls counts."""
        try:
            found = checker.native.search(
                records, state=checker.start, criterion=PROGRAM_ORDER, most_steps=self.most_steps
            )
        except MemoryError:
            return OUT_OF_MEMORY
        return ANSWERS[found[0]]

    def judged(
        self,
        checker: ModelChecker,
        history: History,
        records: NDArray[np.void],
        *,
        tried: bool = False,
        explained: bool = True,
    ) -> str:
        text = super().judged(checker, history, records, tried=tried, explained=explained)
        hinted = text and explained and self.criterion == "linearizable"
        if hinted and self.in_program_order(checker, records) == LEGAL:
            return f"{text}; {STALE}"
        return text

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        return history.signatures

    def model_of(self, history: History, threads: int, fresh: bool, scarce: bool) -> AnswersModel:
        return AnswersModel(self.factory, self.meanings)
