"""Plans: chunks cover each suite's seeds exactly once, and a plan survives its JSON form."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import SEED_LIMIT, Plan, pieces_of_seconds, pieces_of_size
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError


@st.composite
def plans(draw: st.DrawFn, most_seeds: int = 200) -> Plan:
    seeds = draw(st.integers(1, most_seeds))
    return Plan(
        suites=tuple(
            draw(st.lists(st.text("abcdef_", min_size=1), min_size=1, max_size=4, unique=True))
        ),
        first_seed=draw(st.integers(0, SEED_LIMIT - seeds)),
        seeds=seeds,
        pieces=draw(st.integers(1, seeds)),
        options=TrialOptions(
            threads=draw(st.none() | st.integers(1, 64)),
            noise=draw(st.booleans()),
            mutant=draw(st.none() | st.text()),
        ),
    )


@given(plans())
def test_chunks_cover_every_seed_of_every_suite_exactly_once(plan: Plan) -> None:
    seen = Counter(
        (chunk.suite, seed)
        for chunk in plan.chunks()
        for seed in range(chunk.seed_lo, chunk.seed_hi)
    )
    seeds = range(plan.first_seed, plan.first_seed + plan.seeds)
    assert seen == Counter((suite, seed) for suite in plan.suites for seed in seeds)
    assert seen.total() == plan.trials


@given(plans())
def test_chunks_of_a_plan_differ_by_at_most_one_seed(plan: Plan) -> None:
    sizes = {len(chunk) for chunk in plan.chunks()}
    assert max(sizes) - min(sizes) <= 1
    assert min(sizes) >= 1


@given(plans())
def test_a_chunk_follows_from_its_id_alone(plan: Plan) -> None:
    chunks = list(plan.chunks())
    assert [chunk.chunk_id for chunk in chunks] == list(range(plan.chunk_count))
    assert [plan.chunk(chunk.chunk_id) for chunk in chunks] == chunks


@given(plans(most_seeds=10**15))
def test_the_json_form_gives_an_equal_plan_back(plan: Plan) -> None:
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_neighbouring_chunks_belong_to_different_suites() -> None:
    plan = Plan(("one", "two"), 0, 10, 5, TrialOptions())
    assert [chunk.suite for chunk in plan.chunks()] == ["one", "two"] * 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"suites": ()}, "at least one suite"),
        ({"suites": ("a", "a")}, "each suite once"),
        ({"seeds": 0}, "at least 1 seed"),
        ({"first_seed": -1}, "2**63"),
        ({"first_seed": SEED_LIMIT - 9}, "2**63"),
        ({"pieces": 0}, "1 to 10 pieces"),
        ({"pieces": 11}, "1 to 10 pieces"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changes: dict[str, object], message: str) -> None:
    good: dict[str, object] = {"suites": ("a",), "first_seed": 0, "seeds": 10, "pieces": 2}
    good["options"] = TrialOptions()
    with pytest.raises(UsageError) as refused:
        Plan(**{**good, **changes})  # type: ignore[arg-type]
    assert message in str(refused.value)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: [],
        lambda data: {},
        lambda data: {**data, "version": 3},
        lambda data: {key: value for key, value in data.items() if key != "seeds"},
        lambda data: {**data, "options": {"colour": "blue"}},
        lambda data: {**data, "seeds": "many"},
    ],
)
def test_a_damaged_plan_is_refused(damage: Any) -> None:
    data = Plan(("a",), 0, 10, 2, TrialOptions()).to_json()
    with pytest.raises(UsageError):
        Plan.from_json(damage(data))


def test_a_chunk_id_outside_the_plan_is_refused() -> None:
    plan = Plan(("a",), 0, 10, 2, TrialOptions())
    for chunk_id in (-1, 2):
        with pytest.raises(UsageError):
            plan.chunk(chunk_id)


def test_pieces_follow_the_time_of_a_trial_within_bounds() -> None:
    assert pieces_of_seconds(1000, 0.1, 5.0, 4) == 20
    assert pieces_of_seconds(1000, 0.0001, 5.0, 4) == 4
    assert pieces_of_seconds(3, 0.0001, 5.0, 4) == 3
    assert pieces_of_seconds(10, 60.0, 5.0, 4) == 10
    assert pieces_of_size(10, 4) == 3
    assert pieces_of_size(10, 100) == 1
    with pytest.raises(UsageError):
        pieces_of_size(10, 0)
    with pytest.raises(UsageError):
        pieces_of_seconds(10, 1.0, 0.0, 1)
