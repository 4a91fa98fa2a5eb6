"""Judging the answers of executions: what the engine itself cannot know is right or wrong."""

from __future__ import annotations

from collections.abc import Callable

from pulsar_ml.harness.engine import Campaign

# "" when the answers of the campaign's last execution are right, else in words why they cannot be. Asked
# once for each history: equal answers with the same calls before each other are not asked about again.
Judge = Callable[[Campaign], str]


def run_judged(campaign: Campaign, first: int, count: int, judge: Judge | None) -> tuple[int, str]:
    """Like ``campaign.run``, and stop at an execution whose answers ``judge`` refuses too.

    Returns how many executions were made and why the last one was refused, "" if it was not. The campaign was
    made with ``judged`` when there is a judge.
    """
    if judge is None:
        return campaign.run(first, count), ""
    made = 0
    while made < count:
        step = campaign.run(first + made, count - made)
        made += step
        if not campaign.unjudged():
            break
        if message := judge(campaign):
            return made, message
        campaign.accept()
    return made, ""
