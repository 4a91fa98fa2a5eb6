"""Follower: the linearizability of a history that is still written."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from pulsar_ml.harness.histories.history import Operation, as_value, history_of
from pulsar_ml.harness.histories.jepsen import Pairing
from pulsar_ml.harness.linearize.following.events import EventReader
from pulsar_ml.harness.linearize.following.growing import Source
from pulsar_ml.harness.linearize.following.windows import KEPT, Contradiction, Window
from pulsar_ml.harness.linearize.options import DEFAULT, Options
from pulsar_ml.harness.linearize.picture import MOST_SHOWN, lanes
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, UNKNOWN
from pulsar_ml.harness.models import KeyValueMap
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.harness.models.model import Keyed, ModelError, describe_call
from pulsar_ml.wording import counted

MOST_STATES = 4  # states in a text
FIRST_CALLS = 50  # calls on which the model is checked first


@dataclass(frozen=True, slots=True)
class Followed:
    """The answer so far.

    Attributes:
        answer: "legal", "illegal" or "unknown"; an illegal one stays so, whatever follows.
        reason: the limit that was reached.
        events, operations: the numbers of those that were read.
        held: operations that are still kept.
        key: of a model with one object for each key, the key of the contradiction.
        contradiction: the illegal operations.
    """

    answer: str
    events: int
    operations: int
    held: int
    reason: str = ""
    key: object = None
    contradiction: Contradiction | None = None


class Follower:
    """Checks a history event by event.

    With a :class:`Keyed` model, or a map, each key has a window of its own. Of each, the
    past is dropped once it has more than ``kept`` calls; until then an explanation has them.
    """

    def __init__(
        self,
        model: Any,
        name: str,
        *,
        options: Options = DEFAULT,
        keyed: bool = False,
        failed_cas: bool = False,
        numbered: str = "line",
        kept: int = KEPT,
    ) -> None:
        self.kept = kept
        self.model = model
        self.options = options
        self.pairing = Pairing(name, keyed=keyed, failed_cas=failed_cas, numbered=numbered)
        self.windows: dict[Hashable, Window] = {}
        self.changed: dict[Hashable, None] = {}  # keys of windows with new calls, in order
        self.first: list[Operation] = []
        self.keys: dict[int, Hashable] = {}  # of the operations under way
        self.threads: dict[int | str, int] = {}
        self.found: tuple[Hashable, Contradiction] | None = None
        self.split = options.partition and type(model) in (Keyed, KeyValueMap)

    def add(self, number: int, event: Any) -> None:
        """Continue with an event."""
        before = self.pairing.operations
        entered = self.pairing.add(number, event)
        if entered is None:
            return
        place, operation = entered
        over = self.pairing.operations == before
        key: Hashable = None
        if operation is not None and len(self.first) < FIRST_CALLS and not over:
            self.first.append(operation)
            check_model(self.model, history_of([operation], numbered=self.pairing.numbered))
        if self.split:
            key = self.keys.pop(place) if over else self.key_of(place, operation)
            if operation is not None and type(self.model) is Keyed:
                operation = operation._replace(arguments=operation.arguments[1:])
        if key not in self.windows:
            model = self.model.model if self.split and type(self.model) is Keyed else self.model
            self.windows[key] = Window(
                model, self.options, self.pairing.numbered, self.threads, self.kept
            )
        self.windows[key].put(place, operation, over=over)
        self.changed[key] = None

    def key_of(self, place: int, operation: Operation | None) -> Hashable:
        if operation is None or not operation.arguments:
            name = "" if operation is None else operation.name
            raise ModelError(f"{name} has no key; the first argument of every call should be one")
        key: Any = as_value(operation.arguments[0])
        self.keys[place] = key
        return key  # type: ignore[no-any-return]

    def look(self, *, idle: bool = False) -> bool:
        """Check what is new; True when the history is illegal. ``idle``: nothing more is there."""
        for key in list(self.changed):
            if self.found is not None:
                break
            contradiction = self.windows[key].look(idle=idle)
            if contradiction is not None:
                self.found = key, contradiction
            elif idle:
                del self.changed[key]
        return self.found is not None

    @property
    def so_far(self) -> Followed:
        """The answer for what was read."""
        windows = self.windows.values()
        counts = (
            self.pairing.events, self.pairing.operations, sum(len(window) for window in windows)
        )  # fmt: skip
        if self.found is not None:
            key, contradiction = self.found
            return Followed(ILLEGAL, *counts, key=key, contradiction=contradiction)
        for key, window in self.windows.items():
            if window.answer != LEGAL:
                return Followed(UNKNOWN, *counts, reason=window.reason, key=key)
        return Followed(LEGAL, *counts)


def follow(
    source: Source, reader: EventReader, follower: Follower,
    on_progress: Callable[[Followed], None] = lambda _: None,
) -> Followed:  # fmt: skip
    """Check what ``source`` is appended to until it is illegal, or nothing more will come.

    An interruption (KeyboardInterrupt) ends it, too: the answer is that for what was read.
    ``on_progress`` is called before the first reading, and after each.
    """
    try:
        on_progress(follower.so_far)
        while True:
            piece = source.read()
            for number, event in reader.feed(piece):
                follower.pairing.numbered = reader.numbered
                follower.add(number, event)
            if follower.look(idle=not piece):
                return follower.so_far
            on_progress(follower.so_far)
            if not piece and not source.wait():
                for number, event in reader.finish():
                    follower.add(number, event)
                break
    except KeyboardInterrupt:
        pass
    follower.look(idle=True)
    return follower.so_far


def describe_followed(found: Followed, model: Any) -> str:
    """Describe the answer so far in words, with a drawing of the contradiction."""
    how = f"{counted(found.events, 'event')}, {counted(found.operations, 'operation')}"
    if found.answer == LEGAL:
        return f"legal so far: linearizable ({how})"
    if found.answer == UNKNOWN:
        among = "" if found.key is None else f", among the calls of key {found.key!r}"
        return f"unknown so far: {found.reason}{among} ({how})"
    contradiction = found.contradiction
    assert contradiction is not None
    history = contradiction.history
    inner = model.model if type(model) is Keyed and found.key is not None else model
    lines = [f"illegal: not linearizable, whatever follows ({how})"]
    if found.key is not None:
        lines.append(f"  among the calls of key {found.key!r}")
    place = history.place(contradiction.blocked)
    shown = describe_call(inner, history.call(contradiction.blocked))
    lines.append(
        f"  what was read before its return is legal; then nothing leads to {shown}, invoked by "
        f"{place}"
    )
    if contradiction.states:
        states = " or ".join(contradiction.states[:MOST_STATES])
        more = len(contradiction.states) - MOST_STATES
        lines.append(
            f"  earlier calls lead to the state {states}" + f" or {more} more" * (more > 0)
        )
    if contradiction.core:
        core = sorted(contradiction.core, key=lambda at: int(history.records["invoked"][at]))
        after = " after these calls" if contradiction.states else " by themselves"
        lines.append(f"  illegal{after}: " + ", ".join(history.place(at) for at in core))
        lines += ["", lanes(history, core[:MOST_SHOWN], inner, mark=contradiction.blocked)]
    return "\n".join(lines)
