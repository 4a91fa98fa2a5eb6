"""Shrinks a failure: a smaller program and fewer decisions that still fail in the same way.

Threads and operations go first, then arguments, then the decisions that differ from the default
policy (preemptions, stale reads, inserted stores, faults), by delta debugging. A change of the
program moves its decisions, so if the old ones no longer lead to the failure, a few random
executions are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.engine import CHOICES, Explorer
from pulsar_ml.harness.judges.oracle import Judge, run_judged
from pulsar_ml.harness.search.failure import (
    BLOCKED,
    ENDLESS,
    WRONG_ANSWERS,
    Decision,
    Failure,
    of_recorded,
    signature_of,
)
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

Item = TypeVar("Item")
FRESH = 400  # random executions of a smaller program
SEARCHED = 20_000  # executions of a search with fewer preemptions
MOST_ENDLESS = 20  # executions that the engine ends by the clock, each after about half a second
THREAD_CHOICE = 0
VALUE_CHOICE = CHOICES.index("value")
LEAK = "leak"


@dataclass(slots=True)
class Shrinker:
    """The smallest failure so far, and the number of executions that it took to find.

    After ``budget`` executions, or MOST_ENDLESS that ended as ENDLESS, nothing more is tried.
    """

    subject: Subject
    best: Failure
    executions: int = 0
    budget: int | None = None
    judge: Judge | None = None
    by_program: bool | None = None  # of a leak: whether a thread of the program allocated it
    endless: int = 0

    @property
    def left(self) -> int:
        if self.endless >= MOST_ENDLESS:
            return 0
        return SEARCHED if self.budget is None else max(0, self.budget - self.executions)

    def count(self, explorer: Explorer, executions: int) -> None:
        """Count executions, of which only the last one may have failed."""
        self.executions += executions
        self.endless += explorer.failed() and explorer.failure()["kind"] == ENDLESS

    def attempt(
        self, program: Program, decisions: Sequence[Decision], *, fresh: int = 0
    ) -> Failure | None:
        """Return the failure of a smaller input, or None if it does not fail in the same way.

        ``fresh`` is the number of random executions to try when the decisions do not suffice.
        """
        if not self.left:
            return None
        options: dict[str, Any] = {
            "mode": self.best.mode,
            "reuse": self.best.reuse,
            "faults": self.best.faults,
            "step_limit": self.best.step_limit,
            "races": self.best.races,
            "leaks": self.best.leaks,
            "suppress": self.best.suppress,
            "stores": self.best.stores,
        }
        explorer = Explorer(
            self.subject, program, strategy="replay", decisions=tuple(decisions), **options
        )
        explorer.again(0)
        self.count(explorer, 1)
        if (found := self.same(explorer, 0, options, self.refusal(explorer))) is not None:
            return found
        if not fresh:
            return None
        explorer = Explorer(
            self.subject,
            program,
            strategy="portfolio",
            seed=self.best.seed,
            judged=self.judge is not None,
            **options,
        )
        done = 0
        while done < fresh and self.left:
            count, refused = run_judged(explorer, done, fresh - done, self.judge)
            done += count
            self.count(explorer, count)
            if not explorer.failed() and not refused:
                break
            if refused or explorer.failure()["kind"] == self.best.kind:
                explorer.again(done - 1)
                if (found := self.same(explorer, done - 1, options, refused)) is not None:
                    return found
            if refused:
                explorer.accept()  # another failure
        return None

    def refusal(self, explorer: Explorer) -> str:
        """Return the judge's reason against the last execution of ``explorer.again``, or ""."""
        if self.judge is None or explorer.end() != "complete":
            return ""
        return self.judge(explorer)

    def same(
        self, explorer: Explorer, number: int, options: Mapping[str, Any], refused: str
    ) -> Failure | None:
        """Return the failure of the last ``explorer.again(number)`` if its signature is equal."""
        if not explorer.failed() and not refused:
            return None
        if signature_of(explorer, refused) != self.best.signature:
            return None
        found = of_recorded(explorer, number, options, refused)
        if found.kind == LEAK:
            # A block of the program is not one that creation or the last check allocated.
            allocated_by_program = cast("int", explorer.failure()["other_thread"]) >= 0
            if self.by_program is None:
                self.by_program = allocated_by_program
            if allocated_by_program != self.by_program:
                return None
        return found

    def accept(self, found: Failure | None) -> bool:
        """Keep a smaller failure; False for None."""
        if found is not None:
            self.best = replace(
                found,
                seed=self.best.seed,
                execution=0,
                strategy="replay",
                module=self.best.module,
                mutant=self.best.mutant,
            )
        return found is not None


def shrink(
    failure: Failure, subject: Subject, *, budget: int | None = None, judge: Judge | None = None
) -> Failure:
    """Return a failure with the same signature, from fewer threads, calls and decisions.

    The result is ``failure`` itself if it does not happen on this build, if it ended its process,
    or if it blocked in a call for seconds. ``budget`` bounds the number of executions, roughly.
    ``judge`` is the one that refused the answers, if that was the failure. Only one thread of a
    process may use the engine at a time.
    """
    if failure.ended_process or failure.kind == BLOCKED:
        return failure
    judge = (judge or subject.judge) if failure.kind == WRONG_ANSWERS else None
    state = Shrinker(subject, failure, budget=budget, judge=brief(judge))
    if not state.accept(state.attempt(Program.from_json(failure.program), failure.decisions)):
        return failure
    while True:
        before = size(state.best)
        shrink_calls(state)
        shrink_arguments(state)
        shrink_decisions(state)
        search_fewer(state)
        shrink_values(state)
        if size(state.best) >= before:
            break
    drop_idle_threads(state)
    return explained(state, judge)


def shrink_schedule(
    failure: Failure, subject: Subject, *, budget: int | None = None, judge: Judge | None = None
) -> Failure:
    """Shrink the decisions of a failure only, and leave its program as it is."""
    judge = judge or subject.judge
    state = Shrinker(subject, failure, budget=budget, judge=brief(judge))
    if not state.accept(state.attempt(Program.from_json(failure.program), failure.decisions)):
        return failure
    shrink_decisions(state)
    search_fewer(state)
    shrink_values(state)
    return explained(state, judge)


def brief(judge: Judge | None) -> Judge | None:
    """Return the judge's form without explanations, which are the slow part, if it has one."""
    return getattr(judge, "brief", judge)


def explained(state: Shrinker, judge: Judge | None) -> Failure:
    """Return the smallest failure with the judge's full explanation as its message."""
    if judge is not None:
        state.judge, state.budget, state.endless = judge, None, 0
        state.accept(state.attempt(Program.from_json(state.best.program), state.best.decisions))
    return state.best


def size(failure: Failure) -> tuple[int, int]:
    """Return the number of calls and of decisions."""
    program = Program.from_json(failure.program)
    return sum(len(calls) for calls in program.threads), len(failure.decisions)


def with_threads(program: Program, threads: Sequence[NDArray[np.void]]) -> Program:
    return replace(program, threads=tuple(np.ascontiguousarray(calls) for calls in threads))


def shrink_calls(state: Shrinker) -> None:
    """Remove whole threads first (an empty thread keeps its number), then single calls."""
    for thread in range(len(Program.from_json(state.best.program).threads)):
        program = Program.from_json(state.best.program)

        def keep(places: Sequence[int], program: Program = program, thread: int = thread) -> bool:
            threads = list(program.threads)
            threads[thread] = threads[thread][list(places)]
            return state.accept(
                state.attempt(with_threads(program, threads), state.best.decisions, fresh=FRESH)
            )

        places = list(range(len(program.threads[thread])))
        if places and not keep([]):
            delta_debug(places, keep)


def shrink_arguments(state: Shrinker) -> None:
    """Lower each argument to the low end of its range, or half way there."""
    for thread, calls in enumerate(Program.from_json(state.best.program).threads):
        for number in range(len(calls)):
            operation = state.subject.operations[int(calls[number]["code"])]
            for index, argument in enumerate(operation.arguments):
                shrink_argument(state, thread, number, index, argument.low)


def shrink_argument(state: Shrinker, thread: int, number: int, index: int, low: int) -> None:
    while True:
        program = Program.from_json(state.best.program)
        value = int(program.threads[thread][number]["arguments"][index])
        for smaller in dict.fromkeys((low, (low + value) // 2)):
            if smaller == value:
                continue
            calls = program.threads[thread].copy()
            calls["arguments"][number, index] = smaller
            threads = list(program.threads)
            threads[thread] = calls
            if state.accept(state.attempt(with_threads(program, threads), state.best.decisions)):
                break
        else:
            return


def shrink_decisions(state: Shrinker) -> None:
    program = Program.from_json(state.best.program)

    def keep(decisions: Sequence[Decision]) -> bool:
        return state.accept(state.attempt(program, decisions))

    delta_debug(list(state.best.decisions), keep)


def shrink_values(state: Shrinker) -> None:
    """Lower each value that the code under test let the engine choose."""
    program = Program.from_json(state.best.program)
    for index in range(len(state.best.decisions)):
        lower = True
        while lower and index < len(state.best.decisions):
            _, _, kind, value = state.best.decisions[index]
            smaller = sorted({1, value // 2, value - 1} & set(range(1, value)))
            lower = kind == VALUE_CHOICE and any(
                state.accept(state.attempt(program, with_value(state.best.decisions, index, each)))
                for each in smaller
            )


def with_value(decisions: Sequence[Decision], index: int, value: int) -> list[Decision]:
    changed = list(decisions)
    at, thread, kind, _ = changed[index]
    changed[index] = (at, thread, kind, value)
    return changed


def search_fewer(state: Shrinker) -> None:
    """Search executions with fewer preemptions than the failure has.

    Leaving out decisions one by one ends in a local minimum; a search may find a smaller one.
    """
    program = Program.from_json(state.best.program)
    for bound in range(preemptions(state.best)):
        if not state.left:
            return
        explorer = Explorer(
            state.subject,
            program,
            strategy="preemptions",
            bound=bound,
            mode=state.best.mode,
            reuse=state.best.reuse,
            faults=state.best.faults,
            step_limit=state.best.step_limit,
            judged=state.judge is not None,
            races=state.best.races,
            leaks=state.best.leaks,
            suppress=state.best.suppress,
            stores=state.best.stores,
        )
        count, refused = run_judged(explorer, 0, min(SEARCHED, state.left), state.judge)
        state.count(explorer, count)
        if not explorer.failed() and not refused:
            continue
        explorer.again(0)
        if state.accept(state.attempt(program, explorer.decisions_made())):
            shrink_decisions(state)
        return


def preemptions(failure: Failure) -> int:
    """Bound the number of preemptions: each choice of a thread counts, forced ones as well."""
    return sum(kind == THREAD_CHOICE for _, _, kind, _ in failure.decisions)


def drop_idle_threads(state: Shrinker) -> None:
    """Remove threads without calls, and renumber the others."""
    program = Program.from_json(state.best.program)
    busy = [thread for thread, calls in enumerate(program.threads) if len(calls)]
    if len(busy) == len(program.threads) or not busy:
        return
    renumbered = {old: new for new, old in enumerate(busy)}
    decisions = []
    for at, thread, kind, value in state.best.decisions:
        if thread not in renumbered or (kind == 0 and value - 1 not in renumbered):
            continue
        decisions.append(
            (at, renumbered[thread], kind, renumbered[value - 1] + 1 if kind == 0 else value)
        )
    smaller = with_threads(program, [program.threads[thread] for thread in busy])
    state.accept(state.attempt(smaller, decisions, fresh=FRESH))


def delta_debug(items: list[Item], keep: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Return a subset from which no single item can be removed (Zeller's ddmin).

    ``keep`` returns True for a subset that still fails.
    """
    parts = 2
    while items:
        length = max(1, len(items) // parts)
        for start in range(0, len(items), length):
            rest = items[:start] + items[start + length :]
            if keep(rest):
                items = rest
                parts = max(2, parts - 1)
                break
        else:
            if length == 1:
                return items
            parts = min(len(items), parts * 2)
    return items
