"""Histories: the calls of an execution with their results and intervals of time.

A history is an array of records, one for each operation, written by the native runners without
locks, or by :func:`history_of` from Python values. Intervals are closed: an operation that returned
at the stamp at which another was invoked overlaps it. An operation that did not return may have
taken effect at any time after its invocation, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.threads import Shown, follow_one_another, numbered_threads

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    Stamp = int | float | Fraction | Decimal

# Endings of an operation: a crashed one will never have a result, a pending one had none yet.
RETURNED, PENDING, CRASHED = range(3)

NEVER = 2**63 - 1  # the stamp of a return that did not happen
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

# Kinds of results; see Signature.
NONE, WORD, FLAG, ANSWER, VALUE = "none", "word", "flag", "answer", "value"
RESULTS = (NONE, WORD, FLAG, ANSWER, VALUE)


class Unknown:
    """The class of ``UNKNOWN``, the result of an operation that did not return."""

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __reduce__(self) -> str:
        return "UNKNOWN"  # copies and pickles are the same object


UNKNOWN = Unknown()


class Signature(NamedTuple):
    """An operation of a history, and the meaning of the words in its records.

    Attributes:
        name: the operation's name.
        arguments: the number of its arguments.
        result: "none"; "word" for an integer or None; "flag" for a truth value; "answer" for a
            status and four words, as native subjects return; or "value" for an index into the
            history's values, in which case the arguments are such indices, too.
    """

    name: str
    arguments: int
    result: str


class Call(NamedTuple):
    """One call of an operation, as a model sees it.

    Attributes:
        name, arguments: the operation and its arguments.
        result: its result; UNKNOWN if the call did not return. For calls of native subjects the
            status and the four words: ``(status, (first, second, third, fourth))``.
        thread: the calling thread; -1 for a model without ``by_thread``.
    """

    name: str
    arguments: tuple[object, ...] = ()
    result: object = None
    thread: int = -1

    @property
    def pending(self) -> bool:
        """True for a call that did not return: its result may be any."""
        return self.result is UNKNOWN

    def __str__(self) -> str:
        shown = ", ".join(shown_value(argument) for argument in self.arguments)
        answer = "?" if self.pending else shown_value(self.result)
        answer = "" if self.result is None else f" -> {answer}"
        return f"{self.name}({shown}){answer}"


def shown_value(value: object) -> str:
    """Return a value as reports show it, strings in quotes: the string "1" is not the number."""
    return repr(value) if isinstance(value, str) else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The operations of a run with their intervals. An immutable value: the array is read-only.

    :func:`record_run` records a history, :func:`load_history` reads one, and :func:`check_history`
    compares it with a model.

    Attributes:
        signatures: the operations; a record's ``operation`` is an index into them.
        records: an array of ``RECORD``, one row for each operation. Stamps are integers:
            nanoseconds for real threads, steps for the engine, event numbers for Jepsen.
        values: the values that words stand for, for signatures with result "value".
        source: the origin, such as "threads", "engine" or "jepsen".
        subject, settings: of recorded runs, the subject's name and its creation settings.
        threads: the names of the threads by number; empty: numbers are their names.
        numbers: of a history from a file, the number of the line, or of the event, that invokes
            each operation; empty: not known.
        numbered: "line" or "event", the things that ``numbers`` count.
    """

    signatures: tuple[Signature, ...]
    records: NDArray[np.void]
    values: tuple[object, ...] = ()
    source: str = ""
    subject: str = ""
    settings: Mapping[str, int] = field(default_factory=dict)
    threads: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    numbered: str = "line"

    def __len__(self) -> int:
        return len(self.records)

    def call(self, index: int) -> Call:
        """Return operation number ``index`` as a :class:`Call`."""
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
        """Return the call of these words; a ``result`` of None means that it did not return."""
        return decoder(self.signatures, self.values)(operation, arguments, result, thread)

    def select(self, indices: Sequence[int] | NDArray[np.integer]) -> History:
        """Return the history of some of the operations."""
        part = self.with_records(self.records[np.asarray(indices, dtype=np.int64)])
        if not self.numbers:
            return part
        return replace(part, numbers=tuple(self.numbers[index] for index in indices))

    def with_records(self, records: NDArray[np.void]) -> History:
        """Return a history with the same signatures and values, and other records."""
        return replace(self, records=frozen(records), numbers=())

    def place(self, index: int) -> str:
        """Return where operation number ``index`` stands in its file, such as "line 7", or ""."""
        return f"{self.numbered} {self.numbers[index]}" if self.numbers else ""

    def thread_name(self, number: int) -> str:
        """Return the name of thread ``number``."""
        return self.threads[number] if self.threads else str(number)


Decoder = Callable[[int, Sequence[int], "Sequence[int] | None", int], Call]


def decoder(signatures: Sequence[Signature], values: Sequence[object]) -> Decoder:
    """Return a function that decodes words to calls."""

    def decode(
        operation: int, arguments: Sequence[int], result: Sequence[int] | None, thread: int
    ) -> Call:
        name, count, kind = signatures[operation]
        read: tuple[object, ...]
        if kind == VALUE:
            read = tuple([values[word] for word in arguments[:count] if word >= 0])
        else:
            read = tuple(arguments[:count])
        return Call(
            name, read, UNKNOWN if result is None else read_result(kind, result, values), thread
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
    """Return the records as a contiguous, read-only array."""
    records = np.ascontiguousarray(records)
    records.flags.writeable = False
    return records


# From Python values
# --------------------------------------------------------------------------------


class Operation(NamedTuple):
    """One operation as Python values, for :func:`history_of`.

    Attributes:
        thread: a number or a name; the operations of one thread follow one another.
        invoked, returned: stamps of one clock, in any unit: numbers that can be compared, such as
            integers and floats. ``returned`` is None for an operation that did not return.
        crashed: True if it never will.
        number: the line or the event of a file that invokes it; -1: none.
    """

    thread: int | str
    name: str
    arguments: tuple[object, ...]
    result: object
    invoked: Stamp
    returned: Stamp | None
    crashed: bool = False
    number: int = -1


def history_of(
    operations: Iterable[Operation], *, source: str = "python", numbered: str = "line"
) -> History:
    """Return the history of operations whose arguments and results are values that JSON has.

    Stamps that are not all integers of 64 bits are replaced by their ranks, which are exact:
    only the order of stamps has a meaning. Raises UsageError for an interval that ends before it
    begins, for operations of one thread that overlap, for names, stamps and threads that are none,
    and for more than three arguments.
    """
    operations = list(operations)
    for index, one in enumerate(operations):
        refuse_other(index, one)
    names: dict[str, int] = {}
    table = Values()

    def shown(index: int) -> str:
        """Name an operation by its number, and its line in a file."""
        one = operations[index]
        place = f" ({numbered} {one.number})" if one.number >= 0 else ""
        return f"operation {index}{place}, {one.name},"

    invoked, returned = stamps(operations, shown)
    threads, thread_names = numbered_threads(operations, shown)
    follow_one_another(operations, threads, invoked, returned, shown)
    rows = []
    for index, one in enumerate(operations):
        if len(one.arguments) > MOST_ARGUMENTS:
            raise UsageError(
                f"{shown(index)} has {len(one.arguments)} arguments; the most is {MOST_ARGUMENTS}"
            )
        ended = one.returned is not None
        words = [table.number(argument) for argument in one.arguments]
        rows.append(
            (
                threads[index],
                names.setdefault(one.name, len(names)),
                words + [-1] * (MOST_ARGUMENTS - len(words)),
                [table.number(one.result) if ended else -1, 0, 0, 0, 0],
                invoked[index],
                returned[index],
                RETURNED if ended else CRASHED if one.crashed else PENDING,
                0,
            )
        )
    records = np.array(rows, dtype=RECORD) if rows else np.zeros(0, RECORD)
    signatures = tuple(Signature(name, MOST_ARGUMENTS, VALUE) for name in names)
    numbers = tuple(one.number for one in operations)
    return History(
        signatures,
        frozen(records),
        tuple(table.values),
        source,
        threads=thread_names,
        numbers=numbers if all(number >= 0 for number in numbers) else (),
        numbered=numbered,
    )


def refuse_other(index: int, one: object) -> None:
    """Raise UsageError for what is no operation, or has another name than a text."""
    if not isinstance(one, Operation):
        raise UsageError(f"operation {index} is {one!r:.100}; it should be an Operation")
    if type(one.name) is not str:
        raise UsageError(f"operation {index} has the name {one.name!r:.100}; it should be a text")
    if not isinstance(one.arguments, tuple | list):
        raise UsageError(
            f"operation {index}, {one.name}, has the arguments {one.arguments!r:.100}; they should "
            "be a tuple"
        )


def stamps(operations: Sequence[Operation], shown: Shown) -> tuple[list[int], list[int]]:
    """Return the stamps of invocations and of returns as integers; NEVER: it did not return."""
    whole = True
    for index, one in enumerate(operations):
        for what, stamp in (("invoked", one.invoked), ("returned", one.returned)):
            if type(stamp) is int:
                whole = whole and ABSENT <= stamp < NEVER
            elif what == "invoked" or stamp is not None:
                whole = False
                if not is_number(stamp) or stamp != stamp:
                    raise UsageError(
                        f"{shown(index)} was {what} at {stamp!r}; a stamp is an "
                        "integer or another number of a clock that all threads share"
                    )
        if one.returned is not None and one.returned < one.invoked:
            raise UsageError(
                f"{shown(index)} returned at {one.returned}, before it was invoked at {one.invoked}"
            )
    invoked: list[Any] = [one.invoked for one in operations]
    returned: list[Any] = [one.returned for one in operations]
    if not whole:
        moments = {*invoked, *returned} - {None}
        rank = {moment: place for place, moment in enumerate(sorted(moments))}
        invoked = [rank[moment] for moment in invoked]
        returned = [None if moment is None else rank[moment] for moment in returned]
    return invoked, [NEVER if moment is None else moment for moment in returned]


def is_number(stamp: object) -> bool:
    if isinstance(stamp, int | float):
        return True
    from decimal import Decimal
    from fractions import Fraction

    return isinstance(stamp, Fraction | Decimal)


SCALARS = frozenset({type(None), bool, int, float, str})


class Values:
    """Numbers for distinct values; 1, 1.0 and True are three values."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self.numbers: dict[object, int] = {}

    def number(self, value: object) -> int:
        key: object = (type(value), value)
        if type(value) not in SCALARS:
            value = as_value(value)
            key = distinct(value)
        number = self.numbers.get(key)
        if number is None:
            number = self.numbers[key] = len(self.values)
            self.values.append(value)
        return number


def as_value(value: object) -> object:
    """Return the value with tuples for lists, so that it can be hashed.

    Raises UsageError for anything that JSON does not have.
    """
    if isinstance(value, list | tuple):
        return tuple(as_value(item) for item in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise UsageError(
        f"{value!r} is no value of a history; use None, numbers, texts, truth values, and lists of "
        "these"
    )


def distinct(value: object) -> object:
    """Return a key that differs between values of different types, such as 1 and True."""
    if isinstance(value, tuple):
        return tuple(distinct(item) for item in value)
    return (type(value), value)


# From runs
# -----------------------------------------------------------------------------------------


def record_array(program_threads: Sequence[NDArray[np.void]]) -> list[NDArray[np.void]]:
    """Return, for each thread of a program, its records before the run: nothing was invoked yet."""
    arrays = []
    for thread, calls in enumerate(program_threads):
        records = np.zeros(len(calls), RECORD)
        records["thread"] = thread
        records["operation"] = calls["code"]
        records["arguments"] = calls["arguments"]
        records["invoked"] = NEVER
        records["returned"] = NEVER
        records["ending"] = PENDING
        arrays.append(records)
    return arrays


def check_records(records: Sequence[NDArray[np.void]], threads: Sequence[NDArray[np.void]]) -> None:
    """Check that native code may write the records of each thread's calls into these arrays.

    Raises ValueError for other lengths, TypeError for another layout.
    """
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
    """Return the history of a run; operations that were never invoked are left out.

    ``operations`` are the subject's names and numbers of arguments.
    """
    signatures = tuple(Signature(name, count, ANSWER) for name, count in operations)
    joined = np.concatenate(list(records)) if records else np.zeros(0, RECORD)
    joined = joined[joined["invoked"] != NEVER]
    counts = np.array([signature.arguments for signature in signatures], dtype=np.int64)
    # Words behind the last argument of an operation mean nothing.
    spare = np.arange(MOST_ARGUMENTS)[None, :] >= counts[joined["operation"]][:, None]
    joined["arguments"][spare] = 0
    return History(signatures, frozen(joined), (), source, subject, dict(settings))


# Shapes
# ----------------------------------------------------------------------------------------------


def ranks(history: History) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ranks of all invocations and returns in one order; NEVER stays NEVER."""
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
    """Return the most operations that were under way at one time."""
    invoked, returned = ranks(history)
    steps = np.concatenate([np.ones(len(invoked), np.int64), -np.ones(len(returned), np.int64)])
    order = np.argsort(np.concatenate([invoked, returned]), kind="stable")
    return int(np.cumsum(steps[order]).max(initial=0))
