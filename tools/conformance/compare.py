"""Comparison of answers, and the shortest trace of a difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tools.conformance.listed import listed
from tools.conformance.ours import answers as our_answers
from tools.conformance.traces import Trace, is_allowed

Answers = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first line of a trace where the two answers differ; the trace ends there."""

    version: str
    trace: tuple[str, ...]
    ours: str
    theirs: str

    @property
    def name(self) -> str | None:
        """Name of the listed difference, or None."""
        return listed(self.version, self.trace, self.ours, self.theirs)

    def text(self) -> str:
        lines = [f"managed-ledger {self.version}:", *(f"    {line}" for line in self.trace)]
        return "\n".join(
            [
                *lines,
                f"  {self.name or 'not listed'}",
                f"  ours:   {self.ours}",
                f"  theirs: {self.theirs}",
            ]
        )


def difference(version: str, trace: Sequence[str], theirs: Sequence[str]) -> Difference | None:
    ours = our_answers(trace, version)
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine != other:
            return Difference(version, tuple(trace[: number + 1]), mine, other)
    return None


def differences(version: str, traces: Sequence[Trace], run: Answers) -> list[Difference]:
    """The first difference of each trace that has one."""
    compared = zip(traces, answers_of(traces, run), strict=True)
    found = [difference(version, trace, theirs) for trace, theirs in compared]
    return [seen for seen in found if seen is not None]


def answers_of(traces: Sequence[Trace], run: Answers) -> list[list[str]]:
    """The answers to each trace, by one run."""
    if not traces:
        return []
    ends = list(accumulate(len(trace) for trace in traces))
    found = run([line for trace in traces for line in trace])
    return [found[end - len(trace) : end] for trace, end in zip(traces, ends, strict=True)]


def minimised(found: Difference, run: Answers) -> Difference:
    """The trace without the lines that the difference does not need, under the same name."""
    size = max(1, len(found.trace) // 2)
    while True:
        lines = found.trace[1:]
        starts = range(0, len(lines), size)
        shorter = [[found.trace[0], *lines[:at], *lines[at + size :]] for at in starts]
        tried = [trace for trace in shorter if len(trace) > 1 and is_allowed(trace)]
        kept = [
            other
            for other in differences(found.version, tried, run)
            if other.name == found.name and len(other.trace) < len(found.trace)
        ]
        if kept:
            found = min(kept, key=lambda other: len(other.trace))
            size = max(1, min(size, len(found.trace) // 2))
        elif size == 1:
            return found
        else:
            size //= 2
