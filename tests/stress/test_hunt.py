"""A hunt goes on behind other failures of a window, and ends with its executions or its time."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pulsar_ml.campaign.shrink import hunt
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.harness.budgets.passing import Passing
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.subject import Subject

Explore = Callable[..., SimpleNamespace]


def failed(rule: str) -> Failure:
    return cast(
        "Failure", SimpleNamespace(kind="invariant", rule=rule, signature=("invariant", rule))
    )


def explored(*rules: str) -> Explore:
    """An exploration whose executions break these invariants, one after the other."""

    def explore(subject: object, program: object, **options: Any) -> SimpleNamespace:
        known = Passing(options["is_known"])
        done, failure = 0, None
        for rule in rules[: options["executions"]]:
            done += 1
            if not known.passes(failed(rule), done):
                failure = failed(rule)
                break
        met = tuple(known.found.values())
        failure = failure or (met[0].failure if met else None)
        return SimpleNamespace(executions=done, met=met, failure=failure)

    return explore


@pytest.fixture
def search(monkeypatch: pytest.MonkeyPatch) -> Callable[..., hunt.Hunt]:
    def searched(explore: Explore, **options: Any) -> hunt.Hunt:
        monkeypatch.setattr(hunt, "judge_of", lambda model: None)
        monkeypatch.setattr(hunt, "programs_of", lambda *of: [])
        monkeypatch.setattr(hunt, "windows", lambda *of: iter(range(1_000)))
        monkeypatch.setattr(hunt, "shrink", lambda failure, *of, **options: failure)
        monkeypatch.setattr(hunt, "explore", explore)
        record = cast("ReplayRecord", SimpleNamespace(invariant="I3", seed=0))
        suite = cast("Suite", SimpleNamespace(model=None))
        return hunt.search(
            cast("Subject", None), suite, record, **{"mode": "c11", "executions": 100, **options}
        )

    return searched


def test_another_failure_first_hides_nothing(search: Callable[..., hunt.Hunt]) -> None:
    found = search(explored("RB-2", "RB-2", "I1", "I3", "I1"))
    assert found.failure is not None and found.failure.rule == "I3"
    assert (found.windows, found.executions, found.others) == (1, 4, {"RB-2": 2, "I1": 1})


def test_a_hunt_in_vain_says_what_came_instead(search: Callable[..., hunt.Hunt]) -> None:
    found = search(explored(*["RB-2"] * 30))
    assert found.failure is None
    assert (found.windows, found.executions, found.others) == (4, 100, {"RB-2": 100})


def test_time_ends_a_hunt(search: Callable[..., hunt.Hunt]) -> None:
    found = search(explored("RB-2"), seconds=0.0)
    assert (found.windows, found.executions, found.failure) == (0, 0, None)
