"""The order that a failing execution lacks: two steps that should have met, and why they did not.

A data race has two accesses that nothing orders; a stale read did not see a store. Where the later
thread had read what the earlier one wrote behind its access, a release and an acquire there would
have ordered the two (C11 5.1.2.4): the missing edge goes from that store to that load. Without such
a meeting it goes from the one access to the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from pulsar_ml.harness.causes.candidates import stale_pairs
from pulsar_ml.harness.causes.reads_from import hand_overs
from pulsar_ml.harness.causes.trace import Trace, order_of, place_of, what_of
from pulsar_ml.harness.search.failure import Failure, replay_explorer
from pulsar_ml.harness.search.timeline import Missing
from pulsar_ml.harness.subjects.subject import Subject

UNORDERED = "nothing orders these two"


def race_steps(failure: Failure, subject: Subject) -> tuple[int, int] | None:
    """The numbers of both accesses of a data race, in a replay; None for other failures."""
    if failure.race is None:
        return None
    explorer = replay_explorer(failure, subject)
    explorer.again(0)
    raw = cast("Mapping[str, int]", explorer.failure())
    if min(raw["event"], raw["other_event"]) < 0:
        return None
    return raw["other_event"], raw["event"]


def missing_order(
    trace: Sequence[Mapping[str, Any]], race: tuple[int, int] | None
) -> tuple[Missing, str] | None:
    """Return the missing order of a trace with its weak access in words; None for another failure.

    ``race`` is the pair of steps of a data race. The words are "" without a meeting.
    """
    steps = Trace(trace, ())
    victims = [race] if race else stale_pairs(steps)
    for unseen, victim in victims:
        for store, load in hand_overs(trace, unseen, victim):
            if found := weak_hand_over(steps, unseen, store, load, victim):
                return found
    if not victims:
        return None
    unseen, victim = victims[0]
    place = short_place(place_of(steps.events[unseen]))
    return Missing(unseen, victim, UNORDERED if race else f"the store at {place} is not seen"), ""


def weak_hand_over(
    steps: Trace, unseen: int, store: int, load: int, victim: int
) -> tuple[Missing, str] | None:
    """Return what a store and the load that read it lack; None if they synchronise."""
    weak = [
        f"{what_of(event)} {order_now(steps, event)} at {short_place(place_of(event))}"
        for event, side, fenced in (
            (steps.events[store], "release", steps.fenced(unseen, store, "release")),
            (steps.events[load], "acquire", steps.fenced(load, victim, "acquire")),
        )
        if not fenced and lacks(order_now(steps, event), side)
    ]
    if not weak:
        return None
    words = " and ".join(weak)
    return Missing(store, load, f"no synchronisation: {words}"), words


def order_now(steps: Trace, event: Mapping[str, Any]) -> str:
    """The order of an atomic operation; a failed compare-exchange does not show its own."""
    return steps.order_at(event) if event["failed"] else order_of(event)


def lacks(order: str, side: str) -> bool:
    return side not in order and order not in ("acq_rel", "seq_cst")


def short_place(place: str) -> str:
    """Return file:line of a place, without its folder and function."""
    return place.rpartition(" ")[2].rpartition("/")[2]
