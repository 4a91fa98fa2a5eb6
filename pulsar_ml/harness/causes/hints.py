"""Hints at the cause of a failure: changes of the code under test under which the failure is gone.

The engine makes each change while it explores the failure's program again: all executions where
they are few, and a sample. A hint says what was tried; it proves nothing about other programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, cast

from pulsar_ml.errors import LimitsError, NondeterminismError
from pulsar_ml.harness.causes.candidates import (
    Candidate,
    every_seq_cst,
    lock_candidates,
    order_candidates,
)
from pulsar_ml.harness.causes.changes import COST, CallLock, Lock, cost_of, engine_changes
from pulsar_ml.harness.causes.trace import Trace
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.failure import Failure, replay_explorer
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.wording import counted

SEARCHED = 4_000  # executions of a search, at most
SAMPLED = 1_000
MOST_HINTS = 3
MOST_TRIED = 120  # changes
ENOUGH = 10  # times the executions in which the unchanged program fails, unless all are made
MOST_MORE = 300_000  # executions behind the samples and searches of all changes, to make enough
SEQ_CST = COST["seq_cst"]
LOOKED_AT = 16  # executions that show which code the program reaches

Tell = Callable[[int], object]


@dataclass(frozen=True, slots=True)
class Hint:
    """A change under which no execution of the failure's program failed.

    Attributes:
        changes: what is changed together.
        executions: how many executions were made with the change; with ``complete`` those of the
            search alone.
        complete: True when the search made all executions that the program has with the change.
    """

    changes: Candidate
    executions: int
    complete: bool

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(place for change in self.changes for place in change.places)

    def as_data(self) -> dict[str, object]:
        return {
            "changes": [str(change) for change in self.changes],
            "executions": self.executions,
            "complete": self.complete,
        }

    def __str__(self) -> str:
        every = "all " if self.complete else ""
        return (
            f"{'; and '.join(map(str, self.changes))}: none of {every}"
            f"{counted(self.executions, 'execution')} fails"
        )


@dataclass(frozen=True, slots=True)
class Hints:
    """The result of :func:`hints`.

    Attributes:
        found: the hints, the cheapest change first.
        tried: the number of changes that were tried.
        fails_at: the execution at which the unchanged program failed, counted from 1; 0: it did
            not fail again, so that no change could be judged.
        why: why there is no hint; "" if there is one.
    """

    found: tuple[Hint, ...]
    tried: int
    fails_at: int
    why: str = ""

    def lines(self) -> list[str]:
        if not self.found:
            return [f"hints: none; {self.why}"]
        lines = [
            f"the failure is gone with one of these changes ({self.tried:,} tried; unchanged, "
            f"execution {self.fails_at:,} fails; hints, no proof):"
        ]
        lines += [f"  {number}. {hint}" for number, hint in enumerate(self.found, 1)]
        return lines


@dataclass
class Trials:
    """Explorations of the failure's program with changes."""

    failure: Failure
    subject: Subject
    judge: Judge | None
    tried: int = 0
    fails_at: int = 0  # the first execution of the unchanged program that fails; 0: none does
    more: int = 0  # executions behind the samples and searches so far
    unjudged: int = 0  # changes for which too few executions were left

    def explorations(self, changes: Iterable[tuple[int, str, str, str]]) -> Iterable[Exploration]:
        """A sample, a search unless the sample failed, and a larger sample behind the search.

        The executions with a change are ENOUGH times those in which the unchanged program fails:
        a failure so rare may otherwise have stayed away by chance.
        """
        program = Program.from_json(self.failure.program)
        options = self.failure.engine_options() | {
            "seed": self.failure.seed,
            "lock_free": self.failure.lock_free,
            "judge": self.judge,
            "changes": tuple(changes),
        }
        sample = explore(self.subject, program, executions=SAMPLED, **options)
        yield sample
        search = explore(self.subject, program, executions=SEARCHED, strategy="exhaust", **options)
        yield search
        more = ENOUGH * self.fails_at - sample.executions - search.executions
        if search.exhausted != "completely" and 0 < more <= MOST_MORE - self.more:
            self.more += more
            yield explore(self.subject, program, executions=more, first=SAMPLED, **options)

    def run_unchanged(self) -> None:
        executions = 0
        for done in self.explorations(()):
            executions += done.executions
            if done.failure is not None:
                self.fails_at = executions
                return

    def mends(self, candidate: Candidate) -> Hint | None:
        """The hint of a change; None if an execution fails with it, or too few say something."""
        changes = engine_changes(candidate)
        if not changes or self.tried >= MOST_TRIED:
            return None
        self.tried += 1
        executions, complete = 0, False
        try:
            for done in self.explorations(changes):
                if done.failure is not None or done.verdict != "clean":
                    return None
                complete = done.exhausted == "completely"
                executions = done.executions + (0 if complete else executions)
        except (LimitsError, NondeterminismError):
            return None
        if not complete and executions < ENOUGH * self.fails_at:
            self.unjudged += 1
            return None
        return Hint(candidate, executions, complete)


def hints(
    failure: Failure,
    subject: Subject,
    judge: Judge | None = None,
    *,
    most: int = MOST_HINTS,
    on_trial: Tell | None = None,
) -> Hints:
    """Try changes of the code under test, and return those under which the failure is gone.

    ``failure`` should be shrunk. ``judge`` is that of the replay. ``on_trial`` gets the number of
    changes that were tried. An execution may crash, so the caller wants a child process.
    """
    judge = judge or subject.judge
    if failure.ended_process:
        return Hints((), 0, 0, "the failure ends its process")
    again = failure.replay(subject, judge)
    if not again.exact:
        return Hints((), 0, 0, "the replay differs from the record")
    trials = Trials(failure, subject, judge)
    try:
        trials.run_unchanged()
    except (LimitsError, NondeterminismError) as error:
        return Hints((), 0, 0, str(error))
    if not trials.fails_at:
        tried = counted(SAMPLED + SEARCHED, "execution")
        return Hints((), 0, 0, f"the unchanged program did not fail in {tried}")
    trace, race = steps_of(failure, subject)
    found = tuple(mending(trials, trace, race, most, on_trial))
    why = ""
    if not found:
        one = "the only change tried does not end the failure"
        why = f"none of {trials.tried:,} changes ends the failure" if trials.tried > 1 else one
        why += "; more were not tried" * (trials.tried == MOST_TRIED)
        if trials.unjudged:
            why += (
                f"; no execution failed with {trials.unjudged:,} of them, but {ENOUGH} times "
                f"{counted(trials.fails_at, 'execution')} for each are more than this command "
                f"makes: {MOST_MORE:,} behind the samples and searches"
            )
    if not trials.tried:
        why = "the threads share no memory whose accesses could be ordered or locked"
    return Hints(found, trials.tried, trials.fails_at, why)


def mending(
    trials: Trials,
    trace: Trace,
    race: tuple[int, int] | None,
    most: int,
    on_trial: Tell | None,
) -> list[Hint]:
    def mends(candidate: Candidate) -> Hint | None:
        hint = trials.mends(candidate)
        if on_trial is not None:
            on_trial(trials.tried)
        return hint

    found: list[Hint] = []
    strongest = mends(every_seq_cst(trace))
    if strongest is not None:
        for candidate in order_candidates(trace, race):
            if len(found) < most and is_new(candidate, found) and (hint := mends(candidate)):
                found.append(hint)
    if strongest is not None and not found:
        found.append(smallest(strongest, mends))
    if not found:
        calls = call_locks(trials)
        for locks, room in ((lock_candidates(trace, race), most - 1), (calls, most)):
            for candidate in locks:
                if len(found) < room and is_new(candidate, found) and (hint := mends(candidate)):
                    found.append(shortest(hint, mends))
    return sorted(found, key=lambda hint: cost_of(hint.changes))


def shortest(hint: Hint, mends: Callable[[Candidate], Hint | None]) -> Hint:
    """Leave out stretches of a lock without which the failure is gone as well."""
    best = hint
    (lock,) = hint.changes
    for stretch in lock.stretches if isinstance(lock, Lock) else ():
        (now,) = best.changes
        assert isinstance(now, Lock)
        rest = tuple(one for one in now.stretches if one != stretch)
        if rest and (less := mends((Lock(rest),))):
            best = less
    return best


def call_locks(trials: Trials) -> list[Candidate]:
    """Locks around whole operations: around each, around two, and around all of the program."""
    program = Program.from_json(trials.failure.program)
    if program.is_test:
        return []
    codes = sorted({int(code) for calls in program.threads for code in calls["code"]})
    sets = [*combinations(codes, 1), *combinations(codes, 2), tuple(codes)]
    return [
        (CallLock(chosen, tuple(program.operations[code] for code in chosen)),)
        for chosen in dict.fromkeys(sets)
    ]


def is_new(candidate: Candidate, found: list[Hint]) -> bool:
    """False if a cheaper change is known that the candidate contains, or only makes stronger."""
    places = {place for hint in found for place in hint.places}
    if found and cost_of(candidate) >= SEQ_CST and places & {*Hint(candidate, 0, False).places}:
        return False
    return not any(set(hint.changes) <= set(candidate) or wider(candidate, hint) for hint in found)


def wider(candidate: Candidate, hint: Hint) -> bool:
    """True for a lock around all operations of the hint's lock, and more."""
    match candidate, hint.changes:
        case (CallLock(codes=codes),), (CallLock(codes=fewer),):
            return set(fewer) <= set(codes)
    return False


def smallest(strongest: Hint, mends: Callable[[Candidate], Hint | None]) -> Hint:
    """Leave out changes, one after the other, without which the failure is gone as well."""
    best = strongest
    for change in strongest.changes:
        rest = tuple(one for one in best.changes if one != change)
        if rest and (hint := mends(rest)):
            best = hint
    return best


def steps_of(failure: Failure, subject: Subject) -> tuple[Trace, tuple[int, int] | None]:
    """The steps of the failing execution; of a data race, the numbers of both accesses as well."""
    explorer = replay_explorer(failure, subject)
    explorer.again(0)
    events = explorer.trace()
    raw = cast("dict[str, Any]", explorer.failure())
    race = None
    if failure.race is not None and min(raw["event"], raw["other_event"]) >= 0:
        race = raw["other_event"], raw["event"]
    return Trace(events, complete_traces(failure, subject)), race


def complete_traces(failure: Failure, subject: Subject) -> list[list[dict[str, Any]]]:
    """The steps of executions that came to their end: one thread after the other, and random ones.

    Data races are passed over.
    """
    options = failure.engine_options() | {"races": False, "seed": failure.seed}
    program = Program.from_json(failure.program)
    in_turn = replay_explorer(failure, subject, decisions=(), races=False)
    sampler = Explorer(subject, program, strategy="random", **options)
    traces = []
    for explorer, number in ((in_turn, 0), *((sampler, one) for one in range(LOOKED_AT))):
        explorer.again(number)
        if explorer.end() == "complete":
            traces.append(explorer.trace())
    return traces
