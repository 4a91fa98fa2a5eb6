"""Programs of this folder as suites, for the command line; each thread runs its part once."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite

THREADS = {
    "known_race": 2,
    "known_race_and_more": 2,
    "michael_scott": 3,
    "michael_scott_fixed": 3,
    "first_of_eleven": 2,
    "polls_fixed": 2,
    "four_turns": 2,
}
SUITES = {
    name: Suite(
        name=name,
        subject=name,
        summary="A small program with one operation for each thread.",
        controlled=ControlledSize(threads=(threads, threads), operations=(1, 1)),
    )
    for name, threads in THREADS.items()
}
