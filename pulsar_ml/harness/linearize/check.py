"""The linearizability check: tries its algorithms in order and explains illegal histories."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize.cells._maps import Maps
from pulsar_ml.harness.linearize.checker import MEMORY, ModelChecker
from pulsar_ml.harness.linearize.core import minimal
from pulsar_ml.harness.linearize.monitors import judge
from pulsar_ml.harness.linearize.search._answers import StatesFull
from pulsar_ml.harness.linearize.search._native import ANSWERS, Watch
from pulsar_ml.harness.linearize.shipped import blocked_call, cells_for, maps_for
from pulsar_ml.harness.linearize.verdict import (
    ILLEGAL,
    LEGAL,
    QUIESCENT,
    SEQUENTIAL,
    UNKNOWN,
    Verdict,
)
from pulsar_ml.harness.models.model import Keyed

REAL_TIME, PROGRAM_ORDER, QUIESCENCE = range(3)

FEW_STEPS = 32  # the most search steps for each operation before a monitor is tried
WEAKER_STEPS = 1_000_000
BLOCKED_STEPS = 500_000  # the most steps to find the blocked call of an illegal history


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a check.

    Attributes:
        partition: check the keys of a model with a partition one by one.
        monitors: use monitors for models of a register, queue, stack or set.
        natively: use native searches for the models of this package, without calling their methods.
        most_steps: the limit of steps of all searches together; beyond it the answer is "unknown".
        memory: the limit in bytes for each of states, answers and configurations; likewise.
        explain: compute the core of an illegal history.
        weaker: also check an illegal history against the weaker criteria.
    """

    partition: bool = True
    monitors: bool = True
    natively: bool = True
    most_steps: int = 50_000_000
    memory: int = MEMORY
    explain: bool = True
    weaker: bool = True


DEFAULT = Options()


def check(
    history: History, model: Any, *, options: Options = DEFAULT, checker: ModelChecker | None = None
) -> Verdict:
    """Checks whether ``history`` is linearizable with respect to ``model``.

    ``checker`` is an earlier one for the same model, signatures and values. Raises ModelError when
    the model breaks its contract, and UsageError for operations that the model does not have.
    """
    if checker is not None and not checker.fits(history):
        raise ValueError("the checker belongs to histories with other signatures or values")
    try:
        return Check(history, model, options, checker).run()
    except StatesFull as error:
        return Verdict(UNKNOWN, reason=str(error))


class Check:
    """The state of one check."""

    def __init__(
        self, history: History, model: Any, options: Options, checker: ModelChecker | None = None
    ) -> None:
        self.history = history
        self.records = history.records
        self.model = model
        self.prepared = checker
        self.cells = cells_for(model, history) if options.natively else None
        self.options = options
        self.symbols: NDArray[np.int32] = np.zeros(0, np.int32)
        self.steps = 0
        self.configurations = 0

    @property
    def checker(self) -> ModelChecker:
        """The model checker, created on first use: native searches are faster than its creation."""
        if self.prepared is None:
            history = self.history
            self.prepared = ModelChecker(
                self.model, history.signatures, history.values, memory=self.options.memory
            )
        return self.prepared

    def run(self) -> Verdict:
        options = self.options
        monitor = str(getattr(self.model, "monitor", "")) if options.monitors else ""
        if monitor and len(self.records) > 5_000:
            # The symbols of so many records cost more than the monitor.
            if (verdict := self.run_monitor(monitor)) is not None:
                return verdict
            monitor = ""
        keyed = type(self.model) is Keyed
        if (
            self.cells is not None
            and not keyed
            and (verdict := self.check_cell(monitor)) is not None
        ):
            return verdict
        if not (keyed and options.partition):
            self.cells = None  # no answer, or records of several cells
        maps = maps_for(self.model, self.history, options.memory) if options.natively else None
        if maps is not None and (verdict := self.check_map(maps)) is not None:
            return verdict
        self.symbols = self.checker.native.symbols(self.records)
        parts = self.checker.split(self.symbols) if options.partition and self.checker.parts else []
        if len(parts) < 2:
            return self.check_part(parts[0][0] if parts else None, None, monitor)
        orders = []
        unknown = None
        for key, chosen in parts:
            verdict = self.check_part(key, chosen, "")
            if verdict.answer == ILLEGAL:
                return verdict
            if verdict.answer == UNKNOWN:
                unknown = verdict
            orders.append(verdict.linearization)
        if unknown is not None:
            return unknown
        return self.verdict(LEGAL, linearization=self.join_orders(orders))

    def verdict(self, answer: str, **more: Any) -> Verdict:
        return Verdict(answer, steps=self.steps, configurations=self.configurations, **more)

    def search(
        self,
        chosen: NDArray[np.int32] | None,
        most: int,
        criterion: int = REAL_TIME,
        *,
        ahead: bool = True,
    ) -> tuple[str, list[int], int]:
        answer, way, blocked, steps, configurations = self.checker.native.search(
            self.records,
            symbols=self.symbols,
            chosen=chosen,
            state=self.checker.start,
            parts=self.checker.independent(self.symbols) if chosen is None else 1,
            criterion=criterion,
            most_steps=most,
            ahead=ahead,
        )
        self.steps += steps
        self.configurations = max(self.configurations, configurations)
        return ANSWERS[answer], way, blocked

    def check_cell(
        self, monitor: str, key: object = None, chosen: NDArray[np.int32] | None = None
    ) -> Verdict | None:
        """Runs the native search for registers; None when it has no answer."""
        left = max(0, self.options.most_steps - self.steps)
        quick_steps = min(FEW_STEPS * len(self.records), left)
        answer, way = self.search_cell(chosen, quick_steps if monitor else left)
        if answer == "out of steps" and monitor:
            if (verdict := self.run_monitor(monitor)) is not None:
                return verdict
            answer, way = self.search_cell(chosen, max(0, self.options.most_steps - self.steps))
        if answer == LEGAL:
            return self.verdict(LEGAL, linearization=tuple(way))
        if answer == ILLEGAL:
            blocked = -1
            if self.options.explain and self.cells is not None:
                blocked, way = blocked_call(self.cells, self.records, chosen, BLOCKED_STEPS)
            return self.explain(key, chosen, way, blocked)
        if answer == "out of steps":
            return self.verdict(UNKNOWN, reason=self.limit_reached(answer), key=key)
        return None

    def search_cell(self, chosen: NDArray[np.int32] | None, most: int) -> tuple[str, list[int]]:
        if self.cells is None:
            return "", []
        answer, way, steps, configurations = self.cells.search(
            self.records, chosen=chosen, most_steps=most, memory=self.options.memory
        )
        self.steps += steps
        self.configurations = max(self.configurations, configurations)
        return ANSWERS[answer] if answer >= 0 else "", way

    def limit_reached(self, answer: str) -> str:
        return f"{answer} after {self.steps} steps in {self.configurations} configurations"

    def check_map(self, maps: Maps) -> Verdict | None:
        """Runs the native search for maps; None without an answer, or if the model must explain."""
        answer, way, steps, configurations = maps.search(
            self.records, together=not self.options.partition, most_steps=self.options.most_steps
        )
        if (
            answer < 0
            or ANSWERS[answer] == "out of memory"
            or (answer == 1 and self.options.explain)
        ):
            return None
        self.steps, self.configurations = steps, configurations
        if answer == 0:
            return self.verdict(LEGAL, linearization=tuple(way))
        if answer == 1:
            return self.verdict(ILLEGAL, key=maps.illegal_key if maps.parts > 1 else None)
        return self.verdict(UNKNOWN, reason=self.limit_reached(ANSWERS[answer]))

    def check_part(self, key: object, chosen: NDArray[np.int32] | None, monitor: str) -> Verdict:
        """Checks the calls of one key: a short search first, then algorithms that may be faster."""
        if self.cells is not None and (verdict := self.check_cell("", key, chosen)) is not None:
            return verdict
        left = max(0, self.options.most_steps - self.steps)
        quick_steps = FEW_STEPS * len(self.records)
        answer, way, blocked = self.search(chosen, min(quick_steps, left) if monitor else left)
        if answer == "out of steps" and monitor:
            if (verdict := self.run_monitor(monitor)) is not None:
                return verdict
            answer, way, blocked = self.search(chosen, max(0, self.options.most_steps - self.steps))
        if answer == LEGAL:
            return self.verdict(LEGAL, linearization=tuple(way))
        if answer == ILLEGAL and self.checker.looks_ahead:
            # Looking ahead gave up before it reached the blocked call: search again without it.
            blocked = -1
            if self.options.explain:
                again, longest, place = self.search(chosen, BLOCKED_STEPS, ahead=False)
                way, blocked = (longest, place) if again == ILLEGAL else (way, -1)
        if answer == ILLEGAL:
            return self.explain(key, chosen, way, blocked)
        if answer == "out of memory":
            answer, blocked = self.search_just_in_time(
                chosen, max(0, self.options.most_steps - self.steps)
            )
            if answer == LEGAL:
                return self.verdict(LEGAL, method="just in time")
            if answer == ILLEGAL:
                return self.explain(key, chosen, way, blocked, method="just in time")
        return self.verdict(UNKNOWN, reason=self.limit_reached(answer), key=key)

    def search_just_in_time(self, chosen: NDArray[np.int32] | None, most: int) -> tuple[str, int]:
        """Runs the just-in-time search, which needs less memory."""
        watch = Watch(
            self.checker.native,
            state=self.checker.start,
            most_steps=most,
            memory=self.options.memory,
        )
        records = self.records if chosen is None else self.records[chosen]
        order = np.argsort(records["invoked"], kind="stable")
        watch.feed(np.ascontiguousarray(records[order]))
        answer = watch.finish()
        self.steps += watch.steps
        blocked = -1
        if watch.blocked >= 0:
            at = int(order[watch.blocked])
            blocked = at if chosen is None else int(chosen[at])
        return ANSWERS[answer], blocked

    def run_monitor(self, monitor: str) -> Verdict | None:
        """Runs a monitor; None when the history does not qualify."""
        judgement = judge(monitor, self.history, self.model)
        if judgement is None:
            return None
        if judgement.legal:
            return self.verdict(LEGAL, method="monitor")
        witness = np.array(judgement.witness, dtype=np.int32)
        small = Check(self.history.select(witness), self.model, self.options)
        small.symbols = small.checker.native.symbols(small.records)
        answer, way, blocked = small.search(None, self.options.most_steps)
        if answer != ILLEGAL:
            return self.verdict(ILLEGAL, method="monitor", core=tuple(sorted(witness.tolist())))
        found = small.explain(None, None, way, blocked)
        return dataclasses.replace(
            found,
            method="monitor",
            prefix=tuple(int(witness[index]) for index in found.prefix),
            blocked=int(witness[found.blocked]) if found.blocked >= 0 else -1,
            core=tuple(int(witness[index]) for index in found.core),
            weaker=self.weaker() if self.options.explain and len(self.records) <= 5_000 else {},
        )

    def explain(
        self,
        key: object,
        chosen: NDArray[np.int32] | None,
        way: list[int],
        blocked: int,
        method: str = "search",
    ) -> Verdict:
        """Builds the verdict on an illegal history, with its core and the weaker criteria."""
        core: tuple[int, ...] = ()
        weaker: dict[str, str] = {}
        if self.options.explain:
            indices = np.arange(len(self.records), dtype=np.int32) if chosen is None else chosen
            self.number_symbols()
            if blocked >= 0:
                # Calls invoked after the return of the blocked call do not matter.
                until = self.records["returned"][blocked]
                indices = indices[self.records["invoked"][indices] <= until]
            core = minimal(self.checker, self.records, self.symbols, indices, self.cells)
            weaker = self.weaker() if self.options.weaker else {}
        return self.verdict(
            ILLEGAL,
            method=method,
            key=key,
            prefix=tuple(way),
            blocked=blocked,
            core=core,
            weaker=weaker,
        )

    def weaker(self) -> dict[str, str]:
        """The answers for the weaker criteria.

        Quiescent consistency of all keys implies that of the whole history, but not the reverse: a
        key may be quiet while calls of other keys are under way. Sequential consistency of all keys
        implies nothing.
        """
        self.number_symbols()
        pieces = [piece for _, piece in self.checker.split(self.symbols)]
        quiescent = self.weaker_answer(QUIESCENCE, pieces)
        if quiescent != LEGAL and len(pieces) > 1:
            quiescent = self.weaker_answer(QUIESCENCE, [None])
        return {SEQUENTIAL: self.weaker_answer(PROGRAM_ORDER, [None]), QUIESCENT: quiescent}

    def weaker_answer(self, criterion: int, pieces: Sequence[NDArray[np.int32] | None]) -> str:
        """Illegal if a piece is illegal, legal if all pieces are legal, else unknown."""
        answers = set()
        for piece in pieces:
            try:
                answer, _, _ = self.search(piece, WEAKER_STEPS, criterion)
            except StatesFull:
                answer = UNKNOWN
            if answer == ILLEGAL:
                return ILLEGAL
            answers.add(answer)
        return LEGAL if answers <= {LEGAL} else UNKNOWN

    def number_symbols(self) -> None:
        if len(self.symbols) != len(self.records):
            self.symbols = self.checker.native.symbols(self.records)

    def join_orders(self, orders: list[tuple[int, ...] | None]) -> tuple[int, ...] | None:
        """Merges the orders of the keys: every call takes effect at a moment of its interval."""
        invoked = self.records["invoked"].tolist()
        placed: list[tuple[int, int]] = []
        for order in orders:
            if order is None:
                return None
            now = 0
            for place, index in enumerate(order):
                now = invoked[index] if place == 0 else max(now, invoked[index])
                placed.append((now, index))
        placed.sort(key=itemgetter(0))
        return tuple(index for _, index in placed)
