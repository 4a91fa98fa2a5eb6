"""Answers of an object's methods: as words of a result, and as the values that a model expects."""

from __future__ import annotations

import copy
import hashlib
import inspect
import pickle
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from pulsar_ml.harness.histories.history import Call, History
from pulsar_ml.harness.judges.judge import ModelJudge
from pulsar_ml.harness.signatures.answers import (
    FIRST_TUPLE,
    FLAG,
    NOTHING,
    WORD,
    AnswersModel,
    value_of,
)

RAISED, OTHER = -1, -2  # statuses: the first word is a digest of a class's name, of a text
ADDRESS = re.compile(r" at 0x[0-9a-f]+")
WORDS = 4
LEAST, MOST = -(2**63), 2**63 - 1
TEXTS: dict[int, str] = {}  # of the digests that this process has seen

Words = tuple[int, int, int, int, int]


class Raised:
    """The answer of a call that raised an exception; ``name`` is the exception's class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raised) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"raises {self.name}"


class Text(str):
    """The answer of a call whose value is none of the simple ones: its text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def is_word(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= MOST


def words_of(value: object, raised: BaseException | None = None) -> Words:
    """Return the status and the words of an answer: equal for equal answers, in each process."""
    status = OTHER
    words: tuple[int, ...]
    if raised is not None:
        status, words = RAISED, (digest(type(raised).__name__),)
    elif value is None:
        status, words = NOTHING, ()
    elif isinstance(value, bool):
        status, words = FLAG, (int(value),)
    elif isinstance(value, int) and is_word(value):
        status, words = WORD, (int(value),)
    elif isinstance(value, tuple) and len(value) <= WORDS and all(map(is_word, value)):
        status, words = FIRST_TUPLE + len(value), value
    else:
        words = (digest(ADDRESS.sub("", repr(value))),)
    first, second, third, fourth = (*words, 0, 0, 0, 0)[:WORDS]
    return status, first, second, third, fourth


def digest(text: str) -> int:
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)
    TEXTS[number] = text
    return number


def plain_value(answer: tuple[int, tuple[int, ...]]) -> object:
    """Return the Python value of an answer."""
    status, words = answer
    if status == RAISED:
        return Raised(TEXTS.get(words[0], "an exception"))
    if status == OTHER:
        return Text(TEXTS.get(words[0], "another value"))
    return value_of(answer, None)


def answer_text(status: int, word: int) -> str:
    """Describe the answer of a method by its status and its first word."""
    if status > FIRST_TUPLE + 1:
        return f"({word}, ...)"
    return repr(plain_value((status, (word, 0, 0, 0))))


class ObjectModel(AnswersModel):
    """A model with ``init`` and ``step`` that sees the answers of an object's methods as values."""

    def plain(self, call: Call) -> Call:
        result = call.result
        if not call.pending:
            result = plain_value(call.result)  # type: ignore[arg-type]
        return Call(self.names[call.name], call.arguments, result, call.thread)

    def anew(self) -> ObjectModel:
        return ObjectModel(self.factory, self.meanings)


class SequentialObject:
    """A model from a class with the same methods, whose calls run one after the other.

    A state is the pickled object, and a result is legal when the method answers the same.
    """

    spans: frozenset[str] = frozenset()  # no call is modelled as two
    foresees = False

    def __init__(self, factory: Callable[[], object]) -> None:
        self.factory = factory

    def init(self) -> bytes:
        return frozen(self.factory())

    def step(self, state: bytes, call: Call) -> Iterable[bytes]:
        target = pickle.loads(state)
        arguments = copy.deepcopy(call.arguments)
        raised: BaseException | None = None
        value: object = None
        try:
            value = getattr(target, call.name)(*arguments)
        except Exception as error:
            raised = error
        if call.pending or plain_words(words_of(value, raised)) == call.result:
            yield frozen(target)

    def anew(self) -> SequentialObject:
        return SequentialObject(self.factory)

    def describe(self, call: Call) -> str:
        shown = call.result if call.pending else plain_value(call.result)  # type: ignore[arg-type]
        return str(Call(call.name, call.arguments, shown, call.thread))


def plain_words(words: Words) -> tuple[int, tuple[int, ...]]:
    return words[0], words[1:]


def frozen(target: object) -> bytes:
    """Return an object as bytes, by which states are compared.

    Raises TypeError for an object that cannot be pickled.
    """
    try:
        return pickle.dumps(target)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(
            f"a model of class {type(target).__name__} cannot be pickled ({error}); define the "
            "class in a module, and leave locks out of it"
        ) from None


def is_model(factory: Callable[[], Any]) -> bool:
    """True for a factory of models with init() and step()."""
    built = factory()
    return hasattr(built, "init") and hasattr(built, "step")


class ObjectJudge(ModelJudge):
    """Judges the answers of an object's methods by a model: with ``init`` and ``step``, or a class
    with the same methods."""

    def __init__(self, factory: Callable[[], Any], names: Iterable[str]) -> None:
        super().__init__(factory)
        self.meanings: Mapping[str, None] = dict.fromkeys(names)
        self.by_steps = is_model(factory)

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        return history.signatures

    def model_of(self, history: History, threads: int, fresh: bool, scarce: bool) -> Any:
        if self.by_steps:
            return ObjectModel(self.factory, self.meanings)
        return SequentialObject(self.factory)


def public_methods(owner: object) -> dict[str, int]:
    """Return the public methods of an object, each with the number of its required arguments."""
    found = {}
    for name in dir(owner):
        method = getattr(type(owner), name, None)
        if name.startswith("_") or not callable(method):
            continue
        try:
            parameters = inspect.signature(getattr(owner, name)).parameters.values()
        except (TypeError, ValueError):
            continue
        found[name] = sum(
            each.default is each.empty
            and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
            for each in parameters
        )
    return found
