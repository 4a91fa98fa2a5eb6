"""A judge from a sequential model: are the answers of an execution those of some order of its calls?"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulsar_ml.harness.history import History
from pulsar_ml.harness.linearize import (
    ANSWERS,
    ILLEGAL,
    LEGAL,
    UNKNOWN,
    ModelChecker,
    Options,
    Verdict,
    check,
)
from pulsar_ml.harness.recording import history_before, history_filled
from pulsar_ml.harness.sequential import Sequential, signatures_of, with_ends

if TYPE_CHECKING:
    from pulsar_ml.harness.engine import Campaign
    from pulsar_ml.harness.program import Program

MOST_STEPS = 200_000  # of the search for one history, until it is counted as unknown
EXPLAINING = 10_000_000  # steps of the search for what is wrong with an illegal one
MEMORY = 1 << 27  # bytes, of each checker; it is made anew when it needs more
CHECKERS = 4  # kept, for so many combinations of settings and threads
MOST_TOLD = 6  # calls of the minimal illegal part in a message


@dataclass(slots=True)
class Counts:
    """What a judge was asked: histories, and those of them that took too long to say."""

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
        self.counts = Counts()
        self.before: tuple[Program, History] | None = None
        self.checkers: OrderedDict[object, ModelChecker] = OrderedDict()

    def __call__(self, campaign: Campaign) -> str:
        """Why the answers of the campaign's last execution cannot be, or "". Those of one that did not come
        to its end are not judged."""
        if campaign.end() != "complete":
            return ""
        if self.before is None or self.before[0] is not campaign.program:
            self.before = campaign.program, history_before(campaign)
        history = history_filled(self.before[1], campaign)
        return self.message(history, len(campaign.program.threads), fresh=campaign.mode == "sc")

    def message(self, history: History, threads: int, *, fresh: bool = False) -> str:
        """Why the answers of ``history``, of an instance made for ``threads``, cannot be, or "".

        ``fresh``: it was made under sequential consistency, which promises more of a read.
        """
        self.counts.judged += 1
        checker = self.checker(history, threads, fresh)
        whole = as_checked(checker, history)
        if len(whole) == 0:
            return ""
        try:
            answer = ANSWERS[checker.check_many(whole.records[None, :], most_steps=self.most_steps)[0]]
        except MemoryError:
            answer = UNKNOWN
            self.checkers.clear()  # one that knows nothing yet may have enough
        if answer == LEGAL:
            return ""
        if answer == ILLEGAL:
            verdict = check(whole, checker.model, options=Options(most_steps=EXPLAINING), checker=checker)
            return told(whole, verdict, checker.model)
        self.counts.unknown += 1
        return ""

    def checker(self, history: History, threads: int, fresh: bool) -> ModelChecker:
        key = (history.signatures, history.subject, tuple(sorted(history.settings.items())), threads, fresh)
        found = self.checkers.get(key)
        if found is None:
            model = Sequential(self.factory, history.settings, threads, fresh=fresh)
            found = ModelChecker(model, signatures_of(model, history.signatures), memory=MEMORY)
            self.checkers[key] = found
            if len(self.checkers) > CHECKERS:
                self.checkers.popitem(last=False)
        return found


def as_checked(checker: ModelChecker, history: History) -> History:
    """The history with the calls that the checker's model knows."""
    records = with_ends(checker.model, history)
    return History(checker.signatures, records, (), history.source, history.subject, history.settings)


def told(history: History, verdict: Verdict, model: Sequential) -> str:
    """An illegal history in one line: what cannot be placed, and what is illegal by itself."""
    calls = [
        f"{model.describe(history.call(row))} of thread {history.records['thread'][row]}"
        for row in range(len(history))
    ]
    line = "no order of the calls gives these answers"
    if verdict.blocked >= 0:
        line = f"{calls[verdict.blocked]} cannot be put after any legal order of {len(verdict.prefix)} calls"
    core = sorted(verdict.core, key=lambda row: int(history.records["invoked"][row]))
    if core:
        shown = "; ".join(calls[row] for row in core[:MOST_TOLD])
        more = f"; and {len(core) - MOST_TOLD} more" if len(core) > MOST_TOLD else ""
        line += f"; illegal by themselves: {shown}{more}"
    return line
