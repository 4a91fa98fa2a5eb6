"""Exposure: the share of a sweep's core time that was spent inside concurrent runs."""

from __future__ import annotations

from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.merge import SuiteTotals, Summary
from pulsar_ml.terminal.progress import clock

# Columns of trials and what is done in that time.
WORDS = {
    "run_us": "inside concurrent runs",
    "draw_us": "drawing programs",
    "create_us": "creating instances",
    "check_us": "checking invariants",
    "record_us": "recording histories",
    "judge_us": "judging them",
}
ELSEWHERE = "elsewhere"  # waiting, starting processes, Python around the trials, writing


def shares(summary: Summary, cores: int, seconds: float) -> dict[str, float]:
    """The share of ``cores`` for ``seconds`` that the trials spent in each of WORDS, and elsewhere.

    Processor time is counted, so a core that waits, or runs other programs, is elsewhere.
    """
    whole = cores * seconds * 1e6
    if whole <= 0:
        return {}
    found = {
        words: sum(getattr(totals, column) for totals in summary.suites.values()) / whole
        for column, words in WORDS.items()
    }
    return {**found, ELSEWHERE: max(0.0, 1 - sum(found.values()))}


def sentence(summary: Summary, cores: int, seconds: float) -> str:
    """The shares in one line, those below a half percent left out; "" without any."""
    found = shares(summary, cores, seconds)
    if not any(share for words, share in found.items() if words != ELSEWHERE):
        return ""
    inside, *others = found.items()
    if summary.executions:
        inside = "inside executions", inside[1]
    parts = [inside, *((words, share) for words, share in others if share >= 0.005)]
    text = ", ".join(f"{share:.0%} {words}" for words, share in parts)
    return f"core time: {text} (of {cores} cores for {clock(seconds)})"


def inside(totals: SuiteTotals) -> float | None:
    """The share of a suite's processor time that was spent inside concurrent runs.

    None: unknown, as of trials of an older version.
    """
    spent = sum(getattr(totals, column) for column in SPENT)
    return totals.run_us / spent if spent else None
