"""Exposure: the share of a sweep's core time that was spent inside concurrent runs."""

from __future__ import annotations

from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.merge import SuiteTotals, Summary
from pulsar_ml.terminal.progress import clock

# What is done in each phase of a trial. Elsewhere: waiting, starting processes, Python around the
# trials, writing, other programs.
RUN, ELSEWHERE = "run", "elsewhere"
WORDS = {
    RUN: "inside concurrent runs",
    "draw": "drawing programs",
    "create": "creating instances",
    "wait": "starting threads and waiting for each other",
    "check": "checking invariants",
    "record": "recording histories",
    "judge": "judging them",
    ELSEWHERE: "elsewhere",
}


def shares(summary: Summary, cores: int, seconds: float) -> dict[str, float]:
    """The share of ``cores`` for ``seconds`` that the trials spent in each phase, and elsewhere.

    Processor time is counted, so a core that waits, or runs other programs, is elsewhere.
    """
    whole = cores * seconds * 1e6
    if whole <= 0:
        return {}
    found = {
        phase: sum(getattr(totals, f"{phase}_us") for totals in summary.suites.values()) / whole
        for phase in WORDS
        if phase != ELSEWHERE
    }
    return {**found, ELSEWHERE: max(0.0, 1 - sum(found.values()))}


def sentence(summary: Summary, cores: int, seconds: float) -> str:
    """The shares in one line, those below a half percent left out; "" without any."""
    found = shares(summary, cores, seconds)
    if not any(share for phase, share in found.items() if phase != ELSEWHERE):
        return ""
    words = {**WORDS, RUN: "inside executions"} if summary.executions else WORDS
    shown = [phase for phase in found if phase == RUN or found[phase] >= 0.005]
    text = ", ".join(f"{found[phase]:.0%} {words[phase]}" for phase in shown)
    return f"core time: {text} (of {cores} cores for {clock(seconds)})"


def inside(totals: SuiteTotals) -> float | None:
    """The share of a suite's processor time that was spent inside concurrent runs.

    None: unknown, as of trials of an older version.
    """
    spent = sum(getattr(totals, column) for column in SPENT)
    return totals.run_us / spent if spent else None
