"""Judging the answers of executions: what the engine itself cannot know is right or wrong."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    with no_collections():
        while made < count:
            step = campaign.run(first + made, count - made)
            made += step
            if not campaign.unjudged():
                break
            if message := judge(campaign):
                return made, message
            campaign.accept()
    return made, ""


@contextmanager
def no_collections() -> Iterator[None]:
    """Nothing looks for garbage in cycles. A judge makes many small values that stay and are in none; to go
    through all of them again and again takes longer than to make them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            if gc.get_freeze_count() == 0:
                gc.freeze()
                gc.unfreeze()  # now all are among the oldest, as if they had been gone through often
            gc.enable()
