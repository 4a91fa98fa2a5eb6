"""Window: the recent calls of one object, and the states that earlier calls may have left."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize.check import check
from pulsar_ml.harness.linearize.checker import HashedState
from pulsar_ml.harness.linearize.options import Options
from pulsar_ml.harness.linearize.verdict import ILLEGAL, LEGAL, Verdict
from pulsar_ml.harness.models import CasRegister, Counter, Register
from pulsar_ml.harness.models.conformance import check_arguments
from pulsar_ml.harness.models.model import describe_state

MOST_TOGETHER = 20_000  # configurations while calls are under way; beyond, the past is kept
KEPT = 200  # calls of a past that is not dropped yet, so that explanations have them
MOST_CARRIED = 500  # configurations that are carried over
FIRST_NAMED = 1 << 30  # numbers of threads that have names, for models that look at them
EARLIER = "earlier calls"  # the name of the call that leads to one of the carried states


class Configuration(NamedTuple):
    """A possible state of the object, and the open calls that have taken effect, or still may."""

    state: Any
    calls: frozenset[int]


Configurations = dict[Hashable, Configuration]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An illegal history of one object.

    Attributes:
        history: the calls since the past was dropped, until the call that is illegal returned.
        blocked: the index of that call; -1: not determined.
        core: indices of calls that are illegal by themselves after the carried states.
        states: descriptions of the carried states; empty: the history begins here.
    """

    history: History
    blocked: int
    core: tuple[int, ...]
    states: tuple[str, ...]


class Window:
    """The calls of one object since a moment at which none was under way.

    ``carried`` has the calls that never returned before that moment and may still take effect.
    """

    def __init__(
        self, model: Any, options: Options, numbered: str, threads: dict[int | str, int],
        kept: int = KEPT,
    ) -> None:  # fmt: skip
        self.model = model
        self.threads = threads  # numbers for threads that have names
        self.options = replace(options, weaker=False)
        self.numbered = numbered
        self.begun = False  # True once a past was dropped
        self.configurations = [Configuration(model.init(), frozenset())]
        self.illegal_at: Any = None
        self.carried: dict[int, Operation] = {}
        self.settled: dict[int, Operation] = {}  # until the last moment without calls under way
        self.recent: dict[int, Operation] = {}
        self.under_way: set[int] = set()
        self.new_returns = 0
        self.kept = kept
        self.next_attempt = kept  # calls in ``settled`` before they are dropped
        self.answer = LEGAL
        self.reason = ""

    def __len__(self) -> int:
        return len(self.settled) + len(self.recent) + len(self.carried)

    def put(self, number: int, operation: Operation | None, *, over: bool) -> None:
        """Enter a call that begins, or, if it is ``over``, what became known of it."""
        if operation is None:
            self.recent.pop(number, None)
        else:
            self.recent[number] = operation
            self.new_returns += over and operation.returned is not None
        if not over:
            self.under_way.add(number)
            return
        self.under_way.discard(number)
        if not self.under_way:
            self.settled.update(self.recent)
            self.recent.clear()

    def look(self, *, idle: bool) -> Contradiction | None:
        """Check the new calls; without ``idle`` only when they are many beside the old ones."""
        if len(self.settled) > self.next_attempt:
            after = self.advanced()
            if after is None:
                self.next_attempt = 2 * len(self.settled)
            elif not after:
                return self.explained(self.settled, self.illegal_at)
            else:
                self.drop_past(after)
        size = len(self.settled) + len(self.recent)
        if not self.new_returns or (not idle and 4 * self.new_returns < size):
            return None
        self.new_returns = 0
        calls = {**self.settled, **self.recent}
        verdict = self.verdict_of(list(calls.values()), explain=False)[0]
        self.answer, self.reason = verdict.answer, verdict.reason
        return self.explained(calls) if verdict.answer == ILLEGAL else None

    def drop_past(self, after: list[Configuration]) -> None:
        self.configurations = after
        left: frozenset[int] = frozenset[int]().union(*(one.calls for one in after))
        known = {**self.carried, **self.settled}
        self.carried = {number: known[number] for number in sorted(left)}
        self.settled.clear()
        self.next_attempt = self.kept
        self.begun = True
        self.answer, self.reason = LEGAL, ""
        if not self.recent:
            self.new_returns = 0

    # Carrying states over
    # -------------------------------------------------------------------------------------

    def advanced(self) -> list[Configuration] | None:
        """Return the configurations behind the settled calls; None: too many.

        None are left, and ``illegal_at`` is the moment, when the calls are illegal.
        """
        calls = self.calls_of({**self.carried, **self.settled})
        events = sorted(
            moment
            for number, one in self.settled.items()
            for moment in (
                [(one.invoked, 0, number)]
                if one.returned is None
                else [(one.invoked, 0, number), (one.returned, 1, number)]
            )
        )
        is_pure = getattr(self.model, "pure", None)
        open_ = list(self.carried)
        # From here on a configuration has the calls that took effect.
        now = self.by_key((one.state, frozenset(open_) - one.calls) for one in self.configurations)
        for moment, returns, number in events:
            if not returns:
                if self.settled[number].returned is not None or not (
                    is_pure is not None and is_pure(calls[number])
                ):
                    open_.append(number)
                continue
            found = self.returned(now, calls, open_, number)
            if found is None:
                return None
            if not found:
                self.illegal_at = moment
                return []
            now = found
            open_.remove(number)
        kept = frozenset(open_)
        after = self.by_key(
            (one.state, self.first_alike(kept - one.calls, calls)) for one in now.values()
        )
        return list(after.values()) if len(after) <= MOST_CARRIED else None

    def returned(
        self, now: Mapping[Any, Configuration], calls: Mapping[int, Call], open_: Sequence[int],
        number: int,
    ) -> Configurations | None:  # fmt: skip
        """Return the configurations in which call ``number`` took effect; None: too many."""
        seen = dict(now)
        waiting = list(now.values())
        after: Configurations = {}
        while waiting:
            one = waiting.pop()
            if number in one.calls:
                left = one.calls - {number}
                after.setdefault((self.key(one.state), left), Configuration(one.state, left))
                continue
            for other in open_:
                if other in one.calls:
                    continue
                for state in self.model.step(one.state, calls[other]):
                    effected = one.calls | {other}
                    key = self.key(state), effected
                    if key not in seen:
                        seen[key] = Configuration(state, effected)
                        waiting.append(seen[key])
            if len(seen) > MOST_TOGETHER:
                return None
        return after

    def first_alike(self, left: frozenset[int], calls: Mapping[int, Call]) -> frozenset[int]:
        """Return as many calls of each kind, the first ones: equal calls are interchangeable."""
        if len(left) < 2:
            return left
        kinds: dict[str, list[int]] = {}
        for number in sorted(calls):
            kinds.setdefault(repr(calls[number]), []).append(number)
        found: list[int] = []
        for alike in kinds.values():
            open_ = [number for number in alike if calls[number].pending]
            found += open_[: sum(number in left for number in open_)]
        return frozenset(found)

    def by_key(self, pairs: Iterable[tuple[Any, frozenset[int]]]) -> Configurations:
        return {(self.key(state), calls): Configuration(state, calls) for state, calls in pairs}

    def key(self, state: Any) -> Hashable:
        if hasattr(self.model, "key"):
            return self.model.key(state)  # type: ignore[no-any-return]
        if hasattr(self.model, "equal") and hasattr(self.model, "hash"):
            return HashedState(self.model, state)
        return state  # type: ignore[no-any-return]

    def calls_of(self, operations: Mapping[int, Operation]) -> dict[int, Call]:
        """Return the calls of operations as the model sees them."""
        history = history_of(
            one._replace(returned=None if one.returned is None else one.returned)
            for one in operations.values()
        )
        check_arguments(self.model, history)
        by_thread = bool(getattr(self.model, "by_thread", False))
        threads = [one.thread for one in operations.values()]
        return {
            number: history.call(at)._replace(
                thread=self.thread_of(threads[at]) if by_thread else -1
            )
            for at, number in enumerate(operations)
        }

    # Checks of the calls since then
    # -------------------------------------------------------------------------------------

    def verdict_of(
        self, operations: list[Operation], *, explain: bool
    ) -> tuple[Verdict, History, int]:
        """Check calls behind the carried states; the verdict's indices begin with some of ours."""
        options = replace(self.options, explain=explain)
        if not self.begun:
            history = history_of(operations, numbered=self.numbered)
            check_arguments(self.model, history)
            return check(history, self.model, options=options), history, 0
        states = self.configurations
        first = len(states) == 1 and not states[0].calls
        if first and type(self.model) in (Register, CasRegister, Counter):
            history = history_of(operations, numbered=self.numbered)
            check_arguments(self.model, history)
            model = type(self.model)(states[0].state)
            return check(history, model, options=options), history, 0
        known = self.calls_of(self.carried)
        open_calls = {f"call {number}": call for number, call in known.items()}
        numbers = {str(one.thread): self.thread_of(one.thread) for one in operations}
        model = Resumed(self.model, states, open_calls)
        own = [Operation(f"{EARLIER}", EARLIER, (), None, -2, -2)]
        own += [
            Operation(f"call {number}", f"call {number}", (), None, -1, None, True)
            for number in self.carried
        ]
        threads = [one._replace(thread=str(one.thread)) for one in operations]
        history = history_of([*own, *threads])
        model.threads = {at: numbers.get(name, -1) for at, name in enumerate(history.threads)}
        return check(history, model, options=options), history, len(own)

    def thread_of(self, thread: int | str) -> int:
        """Return a number for a thread that stays the same."""
        if type(thread) is int:
            return thread
        return self.threads.setdefault(thread, FIRST_NAMED + len(self.threads))

    def explained(self, calls: Mapping[int, Operation], moment: Any = None) -> Contradiction:
        """Return the shortest illegal beginning of the calls, until ``moment`` if known."""
        moment = self.first_illegal(calls) if moment is None else moment
        until = self.cut(calls, moment)
        core: tuple[int, ...] = ()
        if self.options.explain:
            verdict, _, own = self.verdict_of(until, explain=True)
            if verdict.answer == ILLEGAL:
                core = tuple(at - own for at in verdict.core if at >= own)
        blocked = next(at for at, one in enumerate(until) if one.returned == moment)
        states = [one.state for one in self.configurations] if self.begun else []
        shown = tuple(sorted({describe_state(self.model, state) for state in states}))
        return Contradiction(history_of(until, numbered=self.numbered), blocked, core, shown)

    def first_illegal(self, calls: Mapping[int, Operation]) -> Any:
        """Return the first return up to which the calls are illegal."""
        ends = sorted(one.returned for one in calls.values() if one.returned is not None)
        low, high = 0, len(ends) - 1
        while low < high:
            middle = (low + high) // 2
            until = self.cut(calls, ends[middle])
            if self.verdict_of(until, explain=False)[0].answer == ILLEGAL:
                high = middle
            else:
                low = middle + 1
        return ends[high]

    def cut(self, calls: Mapping[int, Operation], moment: Any) -> list[Operation]:
        """Return the calls as they were known at a moment."""
        return [
            one if one.returned is not None and one.returned <= moment
            else one._replace(result=None, returned=None)
            for one in calls.values() if one.invoked <= moment
        ]  # fmt: skip


class Resumed:
    """``model`` behind a past: its first call leads to each of the carried configurations.

    ``open_calls`` may still take effect, where their configuration has them.
    """

    def __init__(
        self, model: Any, states: Sequence[Configuration], open_calls: Mapping[str, Call]
    ) -> None:
        self.model = model
        self.open_calls = open_calls
        self.numbers = {name: int(name.split()[1]) for name in open_calls}
        self.states = [(one.state, one.calls) for one in states]
        self.by_thread = bool(getattr(model, "by_thread", False))
        self.threads: Mapping[int, int] = {}
        if hasattr(model, "key"):
            self.key = lambda state: state and (model.key(state[0]), state[1])
        elif hasattr(model, "equal"):
            self.equal = self.are_equal
            self.hash = lambda state: hash(state and (model.hash(state[0]), state[1]))

    def are_equal(self, one: Any, two: Any) -> bool:
        if one is None or two is None:
            return one is two
        return bool(one[1] == two[1] and self.model.equal(one[0], two[0]))

    def init(self) -> Any:
        return None

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        if state is None:
            return list(self.states) if call.name == EARLIER else []
        if call.name == EARLIER:
            return []
        inner, left = state
        if call.name in self.open_calls:
            number = self.numbers[call.name]
            if number not in left:
                return []
            left = left - {number}
            call = self.open_calls[call.name]
        elif self.by_thread:
            call = call._replace(thread=self.threads[call.thread])
        return [(after, left) for after in self.model.step(inner, call)]

    def pure(self, call: Call) -> bool:
        if call.name == EARLIER or call.name in self.open_calls:
            return False
        return hasattr(self.model, "pure") and bool(self.model.pure(call))
