"""Histories: which operations ran when, with what arguments, and what they answered.

A history is an array of records, one for each operation, made by the native runners without locks or by
:func:`history_of` from Python values. An operation's interval is closed: one that returned at the very
stamp at which another was invoked overlaps it. An operation that did not return may have happened, at any
time after its invocation, or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import UsageError

# How an operation ended. A crashed one is known to have no answer; a pending one had none yet.
RETURNED, PENDING, CRASHED = range(3)
ENDINGS = ("returned", "pending", "crashed")

NEVER = 2**63 - 1  # the time of a return that did not come
ABSENT = -(2**63)  # a word that stands for None

MOST_ARGUMENTS = 3
RECORD = np.dtype(
    [
        ("thread", "<i4"),
        ("operation", "<i4"),  # index into the history's signatures
        ("arguments", "<i8", (MOST_ARGUMENTS,)),
        ("result", "<i8", (5,)),
        ("invoked", "<i8"),
        ("returned", "<i8"),
        ("ending", "<i4"),
        ("moment", "<i4"),
    ]
)

# What the words of a result are.
NONE, WORD, FLAG, ANSWER, VALUE = "none", "word", "flag", "answer", "value"
RESULTS = (NONE, WORD, FLAG, ANSWER, VALUE)


class Unknown:
    """The result of an operation that did not return. There is one, ``UNKNOWN``."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"  # copies and pickles are the one that there is


UNKNOWN = Unknown()


class Signature(NamedTuple):
    """An operation of a history: how its words are read.

    ``arguments`` is their number. ``result`` is "none"; "word": an integer or None; "flag": a truth value;
    "answer": a status and four words, as native subjects return; or "value": an index into the
    history's values, and then the arguments are such indices too.
    """

    name: str
    arguments: int
    result: str


class Call(NamedTuple):
    """One operation as a model sees it.

    Attributes:
        name, arguments: what was asked for.
        result: what was answered; UNKNOWN if it did not return.
        thread: by whom; -1 for models that do not ask for it.
    """

    name: str
    arguments: tuple[object, ...] = ()
    result: object = None
    thread: int = -1

    @property
    def pending(self) -> bool:
        """Whether it did not return, so that any answer may have been on its way."""
        return self.result is UNKNOWN

    def __str__(self) -> str:
        shown = ", ".join(str(argument) for argument in self.arguments)
        answer = "" if self.result is None else f" -> {'?' if self.pending else self.result}"
        return f"{self.name}({shown}){answer}"


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Operations with their intervals. A value: the array is read-only.

    Attributes:
        signatures: a record's ``operation`` is an index into them.
        records: one for each operation, an array of ``RECORD``.
        values: for signatures with result "value", what the words stand for.
        source: where it is from, such as "threads", "engine" or "jepsen".
        subject, settings: of recorded runs: what ran, with which creation settings.
    """

    signatures: tuple[Signature, ...]
    records: NDArray[np.void]
    values: tuple[object, ...] = ()
    source: str = ""
    subject: str = ""
    settings: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)

    def call(self, index: int) -> Call:
        """Operation number ``index``, with its thread."""
        record = self.records[index]
        return self.decode(
            int(record["operation"]),
            record["arguments"].tolist(),
            None if record["ending"] else record["result"].tolist(),
            int(record["thread"]),
        )

    def decode(
        self,
        operation: int,
        arguments: Sequence[int],
        result: Sequence[int] | None,
        thread: int = -1,
    ) -> Call:
        """The call of these words; ``result`` None: it did not return."""
        return decoder(self.signatures, self.values)(operation, arguments, result, thread)

    def select(self, indices: Sequence[int] | NDArray[np.integer]) -> History:
        """A history of some of the operations."""
        return self.with_records(self.records[np.asarray(indices, dtype=np.int64)])

    def with_records(self, records: NDArray[np.void]) -> History:
        return History(
            self.signatures, frozen(records), self.values, self.source, self.subject, self.settings
        )


Decoder = Callable[[int, Sequence[int], "Sequence[int] | None", int], Call]


def decoder(signatures: Sequence[Signature], values: Sequence[object]) -> Decoder:
    """From words to calls."""

    def decode(
        operation: int, arguments: Sequence[int], result: Sequence[int] | None, thread: int
    ) -> Call:
        name, count, kind = signatures[operation]
        given: tuple[object, ...]
        if kind == VALUE:
            given = tuple([values[word] for word in arguments[:count] if word >= 0])
        else:
            given = tuple(arguments[:count])
        return Call(
            name, given, UNKNOWN if result is None else read_result(kind, result, values), thread
        )

    return decode


def read_result(kind: str, words: Sequence[int], values: Sequence[object]) -> object:
    if kind == VALUE:
        return values[words[0]]
    if kind == WORD:
        return None if words[0] == ABSENT else words[0]
    if kind == FLAG:
        return bool(words[0])
    if kind == ANSWER:
        return words[0], tuple(words[1:])
    return None


def frozen(records: NDArray[np.void]) -> NDArray[np.void]:
    """The records, contiguous and read-only."""
    records = np.ascontiguousarray(records)
    records.flags.writeable = False
    return records


# From Python values --------------------------------------------------------------------------------


class Operation(NamedTuple):
    """One operation by its values, for :func:`history_of`.

    ``returned`` None: it did not return; ``crashed`` then says that it never will.
    """

    thread: int
    name: str
    arguments: tuple[object, ...]
    result: object
    invoked: int
    returned: int | None
    crashed: bool = False


def history_of(operations: Iterable[Operation], *, source: str = "python") -> History:
    """A history of operations whose arguments and results are any values that JSON has.

    Raises UsageError for an interval that ends before it begins, and for more than three arguments.
    """
    names: dict[str, int] = {}
    table = Values()
    rows = []
    for index, given in enumerate(operations):
        if len(given.arguments) > MOST_ARGUMENTS:
            raise UsageError(
                f"operation {index}, {given.name}, has {len(given.arguments)} arguments; the most is "
                f"{MOST_ARGUMENTS}"
            )
        ended = given.returned is not None
        if given.returned is not None and given.returned < given.invoked:
            raise UsageError(
                f"operation {index}, {given.name}, returned at {given.returned}, before it was invoked at "
                f"{given.invoked}"
            )
        words = [table.number(argument) for argument in given.arguments]
        rows.append(
            (
                given.thread,
                names.setdefault(given.name, len(names)),
                words + [-1] * (MOST_ARGUMENTS - len(words)),
                [table.number(given.result) if ended else -1, 0, 0, 0, 0],
                given.invoked,
                given.returned if given.returned is not None else NEVER,
                RETURNED if ended else CRASHED if given.crashed else PENDING,
                0,
            )
        )
    records = np.array(rows, dtype=RECORD) if rows else np.zeros(0, RECORD)
    signatures = tuple(Signature(name, MOST_ARGUMENTS, VALUE) for name in names)
    return History(signatures, frozen(records), tuple(table.values), source)


class Values:
    """Numbers for values; 1, 1.0 and True are three."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.numbers: dict[object, int] = {}

    def number(self, value: object) -> int:
        value = as_value(value)
        key = distinct(value)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number


def as_value(value: object) -> object:
    """Lists become tuples, so that every value can be hashed; UsageError for what is no value."""
    if isinstance(value, list | tuple):
        return tuple(as_value(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(
        f"{value!r} cannot stand in a history; use None, numbers, strings, truth values and lists of them"
    )


def distinct(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(distinct(item) for item in value)
    return (type(value), value)


# From runs -----------------------------------------------------------------------------------------


def record_array(program_threads: Sequence[NDArray[np.void]]) -> list[NDArray[np.void]]:
    """For each thread of a program its records, with what is known before it runs: nothing was invoked
    yet."""
    made = []
    for thread, calls in enumerate(program_threads):
        records = np.zeros(len(calls), RECORD)
        records["thread"] = thread
        records["operation"] = calls["code"]
        records["arguments"] = calls["arguments"]
        records["invoked"] = NEVER
        records["returned"] = NEVER
        records["ending"] = PENDING
        made.append(records)
    return made


def check_records(records: Sequence[NDArray[np.void]], threads: Sequence[NDArray[np.void]]) -> None:
    """Whether a runner may write the records of ``threads``' calls there; ValueError or TypeError if not."""
    wanted, found = [len(calls) for calls in threads], [len(each) for each in records]
    if found != wanted:
        raise ValueError(f"there should be records for {wanted} calls, not for {found}")
    for each in records:
        if each.dtype != RECORD or not each.flags.c_contiguous or not each.flags.writeable:
            raise TypeError(
                "records should be contiguous arrays of history.RECORD that can be written"
            )


def history_of_run(
    operations: Iterable[tuple[str, int]],
    records: Sequence[NDArray[np.void]],
    *,
    source: str,
    subject: str,
    settings: Mapping[str, int],
) -> History:
    """The history of a run: ``operations`` are a subject's names and numbers of arguments; operations
    that were never invoked are left out.
    """
    signatures = tuple(Signature(name, count, ANSWER) for name, count in operations)
    joined = np.concatenate(list(records)) if records else np.zeros(0, RECORD)
    joined = joined[joined["invoked"] != NEVER]
    counts = np.array([signature.arguments for signature in signatures], dtype=np.int64)
    # Words that are no argument of their operation say nothing.
    spare = np.arange(MOST_ARGUMENTS)[None, :] >= counts[joined["operation"]][:, None]
    joined["arguments"][spare] = 0
    return History(signatures, frozen(joined), (), source, subject, dict(settings))


# Shapes ----------------------------------------------------------------------------------------------


def ranks(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Invocations and returns as places in one order of all of them; NEVER stays NEVER."""
    records = history.records
    n = len(records)
    times = np.concatenate([records["invoked"], records["returned"]])
    late = np.zeros(2 * n, np.int8)
    late[n:] = 1  # at one stamp invocations come before returns
    order = np.lexsort((late, times))
    places = np.empty(2 * n, np.int64)
    places[order] = np.arange(2 * n)
    returned = np.where(records["ending"] == RETURNED, places[n:], NEVER)
    return places[:n], returned


def overlap(history: History) -> int:
    """The most operations that were under way at one time."""
    invoked, returned = ranks(history)
    steps = np.concatenate([np.ones(len(invoked), np.int64), -np.ones(len(returned), np.int64)])
    order = np.argsort(np.concatenate([invoked, returned]), kind="stable")
    return int(np.cumsum(steps[order]).max(initial=0))
