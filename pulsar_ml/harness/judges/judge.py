"""A judge from a sequential model: it refuses answers that no legal order of the calls gives."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.histories.recording import history_before, put_answers
from pulsar_ml.harness.linearize import (
    ANSWERS,
    ILLEGAL,
    LEGAL,
    ModelChecker,
    Options,
    Verdict,
    check,
)
from pulsar_ml.harness.models.sequential import Sequential, signatures_of, with_ends

if TYPE_CHECKING:
    from pulsar_ml.harness.engine import Explorer

MOST_STEPS = 200_000  # of the search for one history; then the history counts as unknown
EXPLAINING = 10_000_000  # steps of the search that explains an illegal history
MEMORY = 1 << 27  # bytes of a checker; one that needs more is replaced by a new one
CHECKERS = 4  # the most checkers kept, each for one combination of settings and threads
OUT_OF_MEMORY = "out of memory"
NO_MEMORY = "no_memory"  # the engine's fault: an allocation may fail
NO_ORDER = "no order of the calls gives these answers"
MOST_CALLS = 6  # calls of the minimal illegal part in a message


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of histories that a judge saw, and of those that reached the bound of steps."""

    judged: int = 0
    unknown: int = 0


class ModelJudge:
    """Judges executions by the specification that ``factory(settings, threads)`` returns.

    ``exact`` makes the specification of programs of one thread, where ``factory`` allows whatever
    calls beside each other may answer. It judges unless an allocation may fail, and its attribute
    ``operations``, if it has one, lists the operations that it knows.

    The specification's answers are remembered for all programs with the same settings and number of
    threads. Use a judge in one thread at a time.
    """

    exact: Any = None

    def __init__(self, factory: Any, *, exact: Any = None, most_steps: int = MOST_STEPS) -> None:
        self.factory = factory
        self.exact = exact
        self.most_steps = most_steps
        self.stopped = 0  # histories at which a run stopped
        self.unknown = 0
        # Histories accepted without a stop: by remembered answers, and by asking the model.
        self.accepted = np.zeros(2, np.int64)
        self.prepared: Prepared | None = None
        self.checkers: OrderedDict[object, ModelChecker] = OrderedDict()

    @property
    def counts(self) -> Counts:
        return Counts(self.stopped + int(self.accepted.sum()), self.unknown)

    def __call__(self, explorer: Explorer) -> str:
        """Explain why the last execution's answers are illegal, or return "".

        Incomplete executions are not judged. From then on the engine accepts histories by itself
        that the checker knows.
        """
        return self.refusal(explorer)

    def brief(self, explorer: Explorer) -> str:
        """Like ``__call__``, but without the explanation, which is the slow part."""
        return self.refusal(explorer, explained=False)

    def refusal(self, explorer: Explorer, *, explained: bool = True) -> str:
        if explorer.end() != "complete":
            return ""
        prepared = self.prepared
        tried = prepared is not None and prepared.explorer is explorer
        if prepared is None or not tried:
            prepared = self.prepared = self.prepare(explorer)
        records = prepared.records if tried else prepared.filled(explorer.answers())
        return self.judged(
            prepared.checker, prepared.history, records, tried=tried, explained=explained
        )

    def prepare(self, explorer: Explorer) -> Prepared:
        history = history_before(explorer)
        checker = self.checker(
            history,
            len(explorer.program.threads),
            explorer.mode == "sc",
            scarce=NO_MEMORY in explorer.faults,
        )
        whole, of = as_checked(checker, history)
        foresees = checker.model.foresees
        records = whole.records.copy()
        explorer.ask(checker.native, records, of, self.accepted, foresees=foresees)
        return Prepared(explorer, checker, whole, of, records)

    def message(self, history: History, threads: int, *, fresh: bool = False) -> str:
        """Explain why a history's answers are illegal, or return "".

        ``threads`` is the number for which the instance was created. ``fresh``: the execution was
        sequentially consistent, which allows fewer results of reads.
        """
        checker = self.checker(history, threads, fresh)
        whole = as_checked(checker, history)[0]
        return self.judged(checker, whole, whole.records)

    def judged(
        self,
        checker: ModelChecker,
        history: History,
        records: NDArray[np.void],
        *,
        tried: bool = False,
        explained: bool = True,
    ) -> str:
        """Judge ``records``, whose other parts are those of ``history``.

        ``tried``: the engine has just passed them to the checker.
        """
        self.stopped += 1
        if len(records) == 0:
            return ""
        answer = self.searched(checker, records, tried)
        if answer == OUT_OF_MEMORY:
            self.forget(0)  # a new checker remembers nothing and needs less memory
            self.prepared = None
            checker = ModelChecker(checker.model.anew(), checker.signatures, memory=MEMORY)
            answer = self.searched(checker, records, False)
        if answer == LEGAL:
            return ""
        if answer == ILLEGAL and not explained:
            return NO_ORDER
        if answer == ILLEGAL:
            # The message omits weaker criteria, whose search takes the longest.
            options = Options(most_steps=EXPLAINING, weaker=False)
            history = history.with_records(records.copy())
            verdict = check(history, checker.model, options=options, checker=checker)
            return explanation(history, verdict, checker.model)
        self.unknown += 1
        return ""

    def searched(self, checker: ModelChecker, records: NDArray[np.void], tried: bool) -> str:
        try:
            found = checker.native.search(
                records, state=checker.start, most_steps=self.most_steps, sparing=True, tried=tried
            )
        except MemoryError:
            return OUT_OF_MEMORY
        return ANSWERS[found[0]]

    def checker(
        self, history: History, threads: int, fresh: bool, *, scarce: bool = False
    ) -> ModelChecker:
        exact = self.is_exact(history, threads, scarce)
        key = self.key_of(history, threads, fresh), scarce, exact
        found = self.checkers.get(key)
        if found is None:
            model = self.model_of(history, threads, fresh, scarce)
            found = ModelChecker(model, signatures_of(model, history.signatures), memory=MEMORY)
            found.native.most_steps = self.most_steps
            self.checkers[key] = found
            self.forget(CHECKERS)
        self.checkers.move_to_end(key)
        return found

    def forget(self, most: int) -> None:
        """Free the checkers that were not used for the longest time; ``most`` stay."""
        while len(self.checkers) > most:
            _, checker = self.checkers.popitem(last=False)
            checker.native.close()  # it refers to its model, and the model's to it
            if isinstance(checker.model, Sequential):
                checker.model.forget()

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        """Return a key that is equal for histories which one checker can judge."""
        return (
            history.signatures,
            history.subject,
            tuple(sorted(history.settings.items())),
            threads,
            fresh,
        )

    def is_exact(self, history: History, threads: int, scarce: bool) -> bool:
        """Return true if the exact specification can judge a history."""
        if self.exact is None or threads != 1 or scarce:
            return False
        known = getattr(self.exact, "operations", None)
        called = {history.signatures[number].name for number in set(history.records["operation"])}
        return known is None or called <= known

    def model_of(self, history: History, threads: int, fresh: bool, scarce: bool) -> Any:
        factory = self.exact if self.is_exact(history, threads, scarce) else self.factory
        return Sequential(factory, history.settings, threads, fresh=fresh, scarce=scarce)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The state of a judge that all executions of one program share.

    Attributes:
        explorer, checker, history: the engine's handle, and the program's calls for the checker.
        of: for each record of the history the number of its call in the program.
        records: the engine writes the execution here that it passes to the checker.
    """

    explorer: Explorer
    checker: ModelChecker
    history: History
    of: NDArray[np.intp]
    records: NDArray[np.void]

    def filled(self, answers: NDArray[np.int64]) -> NDArray[np.void]:
        """Return the history's records with the results of :meth:`Explorer.answers`."""
        records = self.history.records.copy()
        put_answers(records, answers if len(answers) == len(self.of) else answers[self.of])
        if len(answers) < len(self.of) and not self.checker.model.foresees:
            # The beginning of a call that spans does not know the result.
            records["result"][self.of[len(answers) :]] = 0
        return records


def as_checked(checker: ModelChecker, history: History) -> tuple[History, NDArray[np.intp]]:
    """Return the history with the calls of the checker's model, and the origin of each record."""
    records, of = with_ends(checker.model, history)
    return History(
        checker.signatures, records, (), history.source, history.subject, history.settings
    ), of


def explanation(history: History, verdict: Verdict, model: Sequential) -> str:
    """Explain an illegal history in one line: the blocked call, and the minimal illegal part."""
    calls = [
        f"{model.describe(history.call(row))} of thread {history.records['thread'][row]}"
        for row in range(len(history))
    ]
    line = NO_ORDER
    if verdict.blocked >= 0:
        count = len(verdict.prefix)
        others = f"{count} other call{'s' * (count != 1)}"
        line = f"{calls[verdict.blocked]} cannot follow any legal order of {others}"
    core = sorted(verdict.core, key=lambda row: int(history.records["invoked"][row]))
    if core:
        shown = "; ".join(calls[row] for row in core[:MOST_CALLS])
        more = f"; and {len(core) - MOST_CALLS} more" if len(core) > MOST_CALLS else ""
        line += f"; illegal by themselves: {shown}{more}"
    return line
