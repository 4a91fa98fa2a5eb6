"""A judge from a sequential model: are the answers of an execution those of some order of its calls?"""

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
    from pulsar_ml.harness.engine import Campaign

MOST_STEPS = 200_000  # of the search for one history, until it is counted as unknown
EXPLAINING = 10_000_000  # steps of the search for what is wrong with an illegal one
MEMORY = 1 << 27  # bytes, of each checker; it is made anew when it needs more
CHECKERS = 4  # kept, for so many combinations of settings and threads
OUT_OF_MEMORY = "out of memory"
NO_ORDER = "no order of the calls gives these answers"
MOST_TOLD = 6  # calls of the minimal illegal part in a message


@dataclass(frozen=True, slots=True)
class Counts:
    """Histories that a judge said something about, and those of them that took too long to say."""

    judged: int = 0
    unknown: int = 0


class ModelJudge:
    """Refuses what the model that ``factory(settings, threads)`` makes cannot answer.

    What the model said before is remembered, for all programs with the same settings and number of
    threads. One thread at a time.
    """

    def __init__(self, factory: Any, *, most_steps: int = MOST_STEPS) -> None:
        self.factory = factory
        self.most_steps = most_steps
        self.stopped = 0  # histories that a run stopped at
        self.unknown = 0
        # Histories that were accepted without a stop: by what was known, and when the model had been asked.
        self.accepted = np.zeros(2, np.int64)
        self.prepared: Prepared | None = None
        self.checkers: OrderedDict[object, ModelChecker] = OrderedDict()

    @property
    def counts(self) -> Counts:
        return Counts(self.stopped + int(self.accepted.sum()), self.unknown)

    def __call__(self, campaign: Campaign) -> str:
        """Why the answers of the campaign's last execution cannot be, or "". Those of one that did not come
        to its end are not judged. From then on the campaign accepts by itself what the checker knows."""
        return self.refusal(campaign)

    def brief(self, campaign: Campaign) -> str:
        """The same of fewer words, for who asks often: what is wrong takes the longest to say."""
        return self.refusal(campaign, explained=False)

    def refusal(self, campaign: Campaign, *, explained: bool = True) -> str:
        if campaign.end() != "complete":
            return ""
        prepared = self.prepared
        tried = prepared is not None and prepared.campaign is campaign
        if prepared is None or not tried:
            prepared = self.prepared = self.prepare(campaign)
        records = prepared.asked if tried else prepared.filled(campaign.answers())
        return self.judged(
            prepared.checker, prepared.history, records, tried=tried, explained=explained
        )

    def prepare(self, campaign: Campaign) -> Prepared:
        history = history_before(campaign)
        checker = self.checker(history, len(campaign.program.threads), campaign.mode == "sc")
        whole, of = as_checked(checker, history)
        foresees = checker.model.foresees
        asked = whole.records.copy()
        campaign.ask(checker.native, asked, of, self.accepted, foresees=foresees)
        return Prepared(campaign, checker, whole, of, asked)

    def message(self, history: History, threads: int, *, fresh: bool = False) -> str:
        """Why the answers of ``history``, of an instance made for ``threads``, cannot be, or "".

        ``fresh``: it was made under sequential consistency, which promises more of a read.
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
        """Why the answers in the records, of a history for the checker, cannot be, or ""; ``tried``: the
        checker was asked about them just before."""
        self.stopped += 1
        if len(records) == 0:
            return ""
        answer = self.searched(checker, records, tried)
        if answer == OUT_OF_MEMORY:
            self.checkers.clear()  # one that knows nothing yet may have enough
            self.prepared = None
            checker = ModelChecker(checker.model.anew(), checker.signatures, memory=MEMORY)
            answer = self.searched(checker, records, False)
        if answer == LEGAL:
            return ""
        if answer == ILLEGAL and not explained:
            return NO_ORDER
        if answer == ILLEGAL:
            # The message says nothing of weaker criteria, which take the longest to search.
            options = Options(most_steps=EXPLAINING, weaker=False)
            history = history.with_records(records.copy())
            verdict = check(history, checker.model, options=options, checker=checker)
            return told(history, verdict, checker.model)
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

    def checker(self, history: History, threads: int, fresh: bool) -> ModelChecker:
        key = self.key_of(history, threads, fresh)
        found = self.checkers.get(key)
        if found is None:
            model = self.model_of(history, threads, fresh)
            found = ModelChecker(model, signatures_of(model, history.signatures), memory=MEMORY)
            found.native.most_steps = self.most_steps
            self.checkers[key] = found
            if len(self.checkers) > CHECKERS:
                self.checkers.popitem(last=False)
        return found

    def key_of(self, history: History, threads: int, fresh: bool) -> Hashable:
        """What histories have in common that one checker serves."""
        return (
            history.signatures,
            history.subject,
            tuple(sorted(history.settings.items())),
            threads,
            fresh,
        )

    def model_of(self, history: History, threads: int, fresh: bool) -> Any:
        return Sequential(self.factory, history.settings, threads, fresh=fresh)


@dataclass(frozen=True, slots=True)
class Prepared:
    """All that the executions of one program have in common for a judge."""

    campaign: Campaign
    checker: ModelChecker
    history: History
    of: NDArray[
        np.intp
    ]  # the call, by its number in the program, that each record of the history is about
    asked: NDArray[np.void]  # records of the execution that the checker was asked about last

    def filled(self, answers: NDArray[np.int64]) -> NDArray[np.void]:
        """The history's records with what :meth:`Campaign.answers` returned."""
        records = self.history.records.copy()
        put_answers(records, answers if len(answers) == len(self.of) else answers[self.of])
        if len(answers) < len(self.of) and not self.checker.model.foresees:
            records["result"][self.of[len(answers) :]] = (
                0  # not for the beginning of a call that spans
            )
        return records


def as_checked(checker: ModelChecker, history: History) -> tuple[History, NDArray[np.intp]]:
    """The history with the calls that the checker's model knows, and which record each is of."""
    records, of = with_ends(checker.model, history)
    return History(
        checker.signatures, records, (), history.source, history.subject, history.settings
    ), of


def told(history: History, verdict: Verdict, model: Sequential) -> str:
    """An illegal history in one line: what cannot be placed, and what is illegal by itself."""
    calls = [
        f"{model.describe(history.call(row))} of thread {history.records['thread'][row]}"
        for row in range(len(history))
    ]
    line = NO_ORDER
    if verdict.blocked >= 0:
        line = f"{calls[verdict.blocked]} cannot be put after any legal order of {len(verdict.prefix)} calls"
    core = sorted(verdict.core, key=lambda row: int(history.records["invoked"][row]))
    if core:
        shown = "; ".join(calls[row] for row in core[:MOST_TOLD])
        more = f"; and {len(core) - MOST_TOLD} more" if len(core) > MOST_TOLD else ""
        line += f"; illegal by themselves: {shown}{more}"
    return line
