"""Searches: the searches for an order of one history's calls, with the effort that they share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import NEVER, VALUE, History
from pulsar_ml.harness.linearize.checker import ModelChecker
from pulsar_ml.harness.linearize.effort import FOR_EVER, Effort
from pulsar_ml.harness.linearize.limits import _memory
from pulsar_ml.harness.linearize.options import Options
from pulsar_ml.harness.linearize.search._answers import records_of_part, with_key_of
from pulsar_ml.harness.linearize.search._native import ANSWERS, Watch
from pulsar_ml.harness.linearize.shipped import cells_for, maps_for, objects_for
from pulsar_ml.harness.models.model import Keyed

if TYPE_CHECKING:
    from pulsar_ml.harness.linearize.cells._cells import Cells
    from pulsar_ml.harness.linearize.cells._maps import Maps
    from pulsar_ml.harness.linearize.cells._parts import Parts
    from pulsar_ml.harness.linearize.objects._objects import Objects

REAL_TIME, PROGRAM_ORDER, QUIESCENCE = range(3)
STEPS, MEMORY_FULL, TIME = ANSWERS[2:5]

Chosen = NDArray[np.int32] | None  # indices of calls; None: all


class Searches:
    """The searches of one history, and what they have in common.

    ``checker`` is a checker of the model that fits the history; without one it is made when a
    search needs it, because native searches are faster than its creation.
    """

    def __init__(
        self,
        history: History,
        model: Any,
        options: Options,
        effort: Effort,
        checker: ModelChecker | None = None,
    ) -> None:
        self.history = history
        self.records = history.records
        self.model = model
        self.options = options
        self.effort = effort
        self.prepared = checker
        self.own = checker is None  # a checker that is made here ends with these searches
        self.cells: Cells | None = None
        self.parts: Parts | None = None  # maps of strings, or other objects
        if options.natively:
            self.cells = cells_for(model, history)
            if self.cells is None:
                self.parts = parts_for(model, history, options.memory)
        for native in (self.cells, self.parts):
            if native is not None:
                native.deadline_ns = effort.deadline_ns
        self._symbols: NDArray[np.int32] | None = None

    def all_parts(self) -> Parts | None:
        """The native search for any criterion; None: only the model can tell."""
        if self.parts is None and self.cells is not None:
            self.parts = parts_for(self.model, self.history, self.options.memory)
        if self.parts is not None:
            self.parts.deadline_ns = self.effort.deadline_ns
        return self.parts

    def of_part(self, chosen: NDArray[np.int32]) -> Searches:
        """Return the searches of a history of these calls only."""
        part = Searches(
            self.history.select(chosen), self.model, self.options, self.effort, self.prepared
        )
        if self.cells is None:
            part.cells = None
        if self.parts is None:
            part.parts = None
        return part

    def of_all_keys(self) -> Searches:
        """Return searches whose states hold all keys; these, where one key is all there is.

        A keyed checker has states of one key. Searches of several keys have a state for each, and
        need no other states; only a core, whose calls that were left out may come at any time,
        needs states of all keys together. So :func:`core.minimal` alone calls this.
        """
        if not self.several_keys:
            return self
        options = replace(self.options, partition=False)
        whole = Searches(self.history, self.model, options, self.effort)
        whole.cells, whole.parts = self.cells, self.parts
        return whole

    @property
    def several_keys(self) -> bool:
        """True when the checker has states of one key, and the calls are of several."""
        return self.checker.keyed and len(self.checker.split(self.symbols)) > 1

    @property
    def checker(self) -> ModelChecker:
        """The checker of the model."""
        if self.prepared is None:
            history = self.history
            self.prepared = ModelChecker(
                self.model,
                history.signatures,
                history.values,
                memory=self.options.memory,
                by_key=type(self.model) is Keyed and self.options.partition,
            )
        self.prepared.native.deadline_ns = self.effort.deadline_ns
        return self.prepared

    def close(self) -> None:
        """End the searches; a kept checker can be used again, without this check's deadline."""
        if self.prepared is None:
            return
        self.prepared.native.deadline_ns = FOR_EVER
        if self.own:
            self.prepared.native.close()  # it refers to its model, and the model's to it
            self.prepared = None

    @property
    def symbols(self) -> NDArray[np.int32]:
        """The number of each call among the distinct calls of the checker."""
        if self._symbols is None:
            self._symbols = self.checker.native.symbols(self.records)
        return self._symbols

    def sorted_symbols(self) -> NDArray[np.int32]:
        """Return the symbols, of which no more than their parts need be known."""
        if self._symbols is None:
            self._symbols = self.checker.native.symbols(self.records, briefly=True)
        return self._symbols

    def part_with(
        self, call: int, alike: NDArray[np.int32] | None = None, until: int = NEVER
    ) -> tuple[object, NDArray[np.int32]] | None:
        """Return the part of a call, its key and its calls; None: the history is in one piece.

        ``alike`` has the same number for calls that differ in their thread at most. Calls that are
        invoked after ``until`` may be left out.
        """
        if type(self.model) is Keyed and all(
            signature.result == VALUE for signature in self.history.signatures
        ):
            found = with_key_of(self.records, self.history.values, call, until)
            if found is not None:
                return found
        checker = self.checker
        if alike is not None and not checker.keyed and not checker.native.by_thread:
            return checker.part_among(self.records, alike, call, until)
        return checker.part_with(self.sorted_symbols(), call)

    def of_model(
        self,
        chosen: Chosen,
        most: int,
        criterion: int = REAL_TIME,
        *,
        ahead: bool = True,
        until: int = NEVER,
    ) -> tuple[str, list[int], int]:
        """Search with the model's steps: the answer, the longest order, and the blocked call.

        ``chosen`` calls that return after ``until`` may take effect, and need not.
        """
        checker = self.checker
        some = chosen is not None and (self._symbols is None or until < NEVER)
        answer, way, blocked, steps, configurations = checker.native.search(
            records_of_part(self.records, chosen, until)
            if some and chosen is not None
            else self.records,
            symbols=None if some else self.symbols,
            chosen=None if some else chosen,
            state=checker.start,
            parts=checker.independent(self.symbols) if chosen is None else 1,
            criterion=criterion,
            most_steps=most,
            ahead=ahead,
        )
        if some and chosen is not None:  # the symbols of other calls are not needed
            way = chosen[way].tolist()
            blocked = int(chosen[blocked]) if blocked >= 0 else -1
        self.effort.add(steps, configurations)
        name = answer_named(answer)
        if name == MEMORY_FULL:  # the next search begins without what this one held
            checker.native.release()
        return name, way, blocked

    def of_cell(self, chosen: Chosen, most: int) -> tuple[str, list[int]]:
        """Search for a register; the answer is "" when the records are not of one register."""
        if self.cells is None:
            return "", []
        answer, way, steps, configurations = self.cells.search(
            self.records, chosen=chosen, most_steps=most, memory=self.options.memory
        )
        self.effort.add(steps, configurations)
        name = answer_named(answer)
        if name == MEMORY_FULL:  # the next search begins without what this one held
            self.cells = cells_for(self.model, self.history)
            if self.cells is not None:
                self.cells.deadline_ns = self.effort.deadline_ns
        return name, way

    def of_native_part(
        self, native: Parts, chosen: NDArray[np.int32], most: int
    ) -> tuple[str, list[int]]:
        """Search one of several parts without the model."""
        answer, way, steps, found = native.search_part(self.records, chosen, most_steps=most)
        self.effort.add(steps, found)
        return answer_named(answer) or MEMORY_FULL, way

    def natively(self, records: NDArray[np.void], most: int) -> tuple[str, list[int]]:
        """Search records without the model; "": unsuitable ones."""
        if self.cells is not None:
            answer, way, steps, found = self.cells.search(
                records, most_steps=most, memory=self.options.memory
            )
        else:
            assert self.parts is not None
            answer, way, steps, found = self.parts.search(records, together=True, most_steps=most)
        self.effort.add(steps, found)
        return answer_named(answer), way

    def just_in_time(self, chosen: Chosen, most: int) -> tuple[str, int]:
        """Search with less memory: the answer, and the blocked call."""
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
        self.effort.add(watch.steps, 0)
        blocked = -1
        if watch.blocked >= 0:
            at = int(order[watch.blocked])
            blocked = at if chosen is None else int(chosen[at])
        return answer_named(answer), blocked


def answer_named(answer: int) -> str:
    """Return the name of a search's answer; "" for unsuitable records.

    A search gives up for time and for memory at the same place.
    """
    if answer < 0:
        return ""
    name = ANSWERS[answer]
    return MEMORY_FULL if name == TIME and _memory.was_reached() else name


def parts_for(model: Any, history: History, memory: int) -> Maps | Objects | None:
    """The native search for a model of this package; None for others."""
    for kind in (maps_for, objects_for):
        native = kind(model, history, memory)
        if native is not None and native.takes(history.records):
            return native
    return None
