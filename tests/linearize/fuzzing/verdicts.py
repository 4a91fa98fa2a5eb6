"""Compares what a verdict claims with all orders of its history."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize import LEGAL, QUIESCENT, SEQUENTIAL, Verdict
from tests.linearize.fuzzing.specifications import Judge

UNITS = ("queue", "stack", "priority-queue")  # models whose equal values may be left out together


class Claims:
    """The claims about one history, and what was found out about them so far."""

    def __init__(self, judge: Judge, history: History, model: Any) -> None:
        self.judge = judge
        self.history = history
        self.model = model
        self.rows = judge.rows
        self.legal = judge.legal()
        self.weaker = {
            SEQUENTIAL: judge.legal(judge.program), QUIESCENT: judge.legal(judge.quiet)
        }  # fmt: skip
        self.known: dict[Any, list[str]] = {}
        self.unexplained = 0  # verdicts whose core is not minimal, as they say

    def wrong(self, verdict: Verdict, *, explained: bool = True) -> Iterator[str]:
        """Yield what is wrong with a verdict."""
        if (verdict.answer == LEGAL) != self.legal:
            yield f"{verdict.answer} ({verdict.reason}), should be {self.expected}"
            return
        order = verdict.linearization if self.legal else verdict.prefix
        if order is not None and not self.judge.replays(order, self.judge.real_time):
            yield f"order {order}"
        if self.legal:
            if order is not None and self.returned() - set(order):
                yield f"order {order} lacks {self.returned() - set(order)}"
            return
        if not explained:
            return
        for name, holds in self.weaker.items():
            if verdict.weaker[name] != (LEGAL if holds else "illegal"):
                yield f"{name}: {verdict.weaker[name]}, should be {holds}"
        yield from self.wrong_blocked(verdict)
        if "core" in verdict.unexplained:
            self.unexplained += 1
            if self.judge.legal(chosen=verdict.core):
                yield f"core {verdict.core} is legal"
            return
        yield from self.wrong_core(verdict)

    @property
    def expected(self) -> str:
        return LEGAL if self.legal else "illegal"

    def returned(self) -> set[int]:
        return {at for at, row in enumerate(self.rows) if row.returned is not None}

    def part(self, verdict: Verdict) -> list[int]:
        """The calls of the part that the verdict is about."""
        everything = list(range(len(self.rows)))
        if verdict.key is None:
            return everything
        return [
            at for at in everything if self.model.partition(self.history.call(at)) == verdict.key
        ]

    def wrong_blocked(self, verdict: Verdict) -> Iterator[str]:
        """Until just before the blocked call's return the history is legal; until then it is not.

        Calls that return later may be left out; in an order they have their results.
        """
        end = self.rows[verdict.blocked].returned if verdict.blocked >= 0 else None
        if end is None:
            yield f"blocked {verdict.blocked}"
            return
        part = self.part(verdict)
        key = "blocked", verdict.blocked, verdict.key
        if key not in self.known:
            chosen = [at for at in part if self.rows[at].invoked <= end]
            later = {at for at in chosen if (self.rows[at].returned or end) > end}
            at_once = {at for at in chosen if self.rows[at].returned == end}
            claims = []
            if not self.judge.legal(chosen=chosen, optional=later | at_once):
                claims.append(f"blocked {verdict.blocked}: illegal before its return")
            if self.judge.legal(chosen=chosen, optional=later):
                claims.append(f"blocked {verdict.blocked}: legal until its return")
            self.known[key] = claims
        yield from self.known[key]
        missing = {
            at for at in part if at != verdict.blocked and (self.rows[at].returned or end) < end
        } - set(verdict.prefix)
        if missing or verdict.blocked in verdict.prefix:
            yield f"prefix {verdict.prefix} lacks {missing} before {verdict.blocked}"

    def wrong_core(self, verdict: Verdict) -> Iterator[str]:
        core = tuple(sorted(verdict.core))
        key = "core", core, verdict.blocked, verdict.key
        if key not in self.known:
            end = self.rows[verdict.blocked].returned
            spare = [
                at for at in self.part(verdict)
                if at not in core and not self.judge.pure(at)
                and (end is None or self.rows[at].invoked <= end)
            ]  # fmt: skip
            self.known[key] = list(self.claims_of_core(core, spare))
        yield from self.known[key]

    def claims_of_core(self, core: Sequence[int], spare: list[int]) -> Iterator[str]:
        """Yield what is wrong with a core, next to calls that were left out and change the state.

        A core is illegal by itself, and with the spare calls at any time, each once; except that a
        model with units leaves out calls of one value together, which proves nothing about other
        times. No call of a core can be left out. Searches count the effects of spare calls
        together, so that one may have the effects of another.
        """
        judge = self.judge
        units = judge.name in UNITS and not judge.keyed
        if judge.legal(chosen=core):
            yield f"core {core} is legal"
        elif not units and judge.legal(chosen=core, spare=spare, each_once=True):
            yield f"core {core} is legal with {spare} at any time"
        for at in core:
            rest = [other for other in core if other != at]
            more = spare if judge.pure(at) else [*spare, at]
            if not judge.legal(chosen=rest, spare=more):
                yield f"core {core} is illegal without {at}, too"
        if units:
            values = {self.value(at) for at in core} - {None}
            for value in values:
                rest = [at for at in core if self.value(at) != value]
                if not judge.legal(chosen=rest, spare=spare):
                    yield f"core {core} is illegal without the calls of {value}, too"

    def value(self, at: int) -> object:
        """The value of a call that puts or takes one; None: none."""
        row = self.rows[at]
        if row.arguments:
            return row.arguments[0]
        return row.result if row.returned is not None else None
