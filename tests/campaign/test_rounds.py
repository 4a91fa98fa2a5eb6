"""Rounds: trials follow the findings, each arm keeps its floor, killed runs resume unchanged."""

from __future__ import annotations

import dataclasses
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.allocation import WINDOW, Gain, divide
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Arm, GainCounter, Rounds, round_name
from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.run.runner import InlineRunner, PoolRunner
from pulsar_ml.campaign.run.waves import Outcome, run_campaign
from pulsar_ml.campaign.store.store import RunStore, read_trials
from pulsar_ml.campaign.trial.chunk import Job
from pulsar_ml.campaign.trial.controlled import load_checked
from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.campaign.trial.trial import CONTROLLED, TrialOptions, TrialResult, Violation
from pulsar_ml.errors import UsageError
from tests.campaign.rows import BUILD_ID, JOB, made_up_trial, stable_rows
from tests.campaign.test_resume import Killed, Mortal
from tests.harness.toys.build_toys import toys_path

GAINS = st.builds(
    Gain, trials=st.integers(0, 50), classes=st.integers(0, 10_000), signatures=st.integers(0, 5)
)
HISTORIES = st.integers(1, 8).flatmap(
    lambda arms: st.integers(0, 5).flatmap(
        lambda rounds: st.lists(
            st.lists(GAINS, min_size=rounds, max_size=rounds), min_size=arms, max_size=arms
        )
    )
)
FLOORS = st.fractions(0, 1)
QUIET, RICH = "quiet", "rich"
SHORT = (5, 2)  # seeds and rounds of a run that is killed repeatedly
SUITES = {
    name: Suite(name=name, subject=name, summary="Made up.") for name in (QUIET, RICH, "third")
}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda handle: None)


# The division.


@given(HISTORIES, st.integers(0, 1000), FLOORS)
def test_shares_are_the_budget_and_not_below_the_floor(
    histories: list[list[Gain]], more: int, floor: Fraction
) -> None:
    budget = len(histories) + more
    shares = divide(budget, histories, floor)
    assert sum(shares) == budget
    assert min(shares) >= max(1, int(floor * budget / len(histories)))


@given(HISTORIES, st.integers(0, 1000), FLOORS, st.data())
def test_who_finds_more_does_not_get_less(
    histories: list[list[Gain]], more: int, floor: Fraction, data: st.DataObject
) -> None:
    if not histories[0]:
        histories = [[Gain(trials=5)] for _ in histories]
    budget = len(histories) + more
    arm = data.draw(st.integers(0, len(histories) - 1))
    at = data.draw(st.integers(0, len(histories[arm]) - 1))
    name = data.draw(st.sampled_from(["classes", "signatures"]))
    gain = histories[arm][at]
    richer = [list(history) for history in histories]
    richer[arm][at] = dataclasses.replace(
        gain, **{name: getattr(gain, name) + data.draw(st.integers(1, 99))}
    )
    assert divide(budget, richer, floor)[arm] >= divide(budget, histories, floor)[arm]


@given(st.integers(2, 6), st.integers(0, 500), FLOORS)
def test_an_arm_that_finds_nothing_any_more_gets_the_floor(
    arms: int, more: int, floor: Fraction
) -> None:
    rich_once = [Gain(trials=10, classes=500, signatures=4)] + [Gain(trials=10)] * WINDOW
    histories = [rich_once] + [[Gain(trials=10, classes=7)] * (1 + WINDOW)] * (arms - 1)
    shares = divide(arms + more, histories, floor)
    assert shares[0] == max(1, int(floor * (arms + more) / arms))


def test_one_half_follows_new_failures_and_the_other_new_classes() -> None:
    failing = [Gain(trials=10, signatures=1)]
    varied = [Gain(trials=10, classes=300)]
    dull = [Gain(trials=10, classes=100)]
    # 30 for the floors; of 270, 135 for the failing arm, and 135 in the proportion 3 to 1.
    assert divide(300, [failing, varied, dull], Fraction(1, 10)) == [145, 111, 44]
    assert divide(300, [[Gain(trials=10)], varied, dull], Fraction(1, 10)) == [10, 213, 77]
    assert divide(10, [[], [], []], Fraction(1, 10)) == [4, 3, 3]
    with pytest.raises(UsageError, match="2 trials is too short for 3 arms"):
        divide(2, [[], [], []], Fraction(0))


# A campaign in rounds.


def rich_trial(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
    """Fail at every fifth seed of one suite, each time with a new signature."""
    found = made_up_trial(suite, 1, options)
    violations: tuple[Violation, ...] = ()
    if suite.name == RICH and seed % 5 == 0:
        violations = (Violation("I1", "broken", "running", places=(f"file.c:{seed}",)),)
    verdict = "violation" if violations else "clean"
    return dataclasses.replace(found, seed=seed, verdict=verdict, violations=violations)


def rounds_of(seeds: int, rounds: int, floor: float = 0.2) -> Rounds:
    return Rounds(Plan(tuple(SUITES), 100, seeds, seeds // 5, TrialOptions()), (), rounds, floor)


def session(directory: Path, seeds: int = 20, rounds: int = 4) -> Outcome:
    """Begin a run in rounds, or resume it."""
    outcome = Outcome()
    done: AbstractSet[int] = frozenset()
    source = rounds_of(seeds, rounds)
    if (directory / "run.json").exists():
        past = past_of(directory)
        assert past.rounds is not None
        store, done, source = past.store, past.done, past.rounds
        outcome.summary, outcome.waves, outcome.earlier = (
            past.summary,
            past.waves,
            past.summary.trials,
        )
        store.tidy()
    else:
        facts = {"run_id": JOB.run_id, "build_id": BUILD_ID, "runner": {}}
        store = RunStore(
            directory, {**facts, "plan": source.plan.to_json(), "rounds": source.to_data()}
        )
    try:
        runner = InlineRunner(SUITES, trial=rich_trial)
        return run_campaign(
            source, JOB, runner, store, outcome=outcome, done=done, wave_seconds=0.0
        )
    finally:
        store.close()


def trials_by_suite(directory: Path) -> Counter[str]:
    return Counter(read_trials(directory)["suite"].to_pylist())


def contents(directory: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in sorted((directory / "rounds").iterdir())]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("undisturbed") / "run"
    assert session(directory).status == "finished"
    return directory


def test_trials_move_to_the_suite_that_finds_failures_and_find_more(
    undisturbed: Path, tmp_path: Path
) -> None:
    uniform = session(tmp_path / "uniform", rounds=1)
    moved = trials_by_suite(undisturbed)
    assert trials_by_suite(tmp_path / "uniform") == {QUIET: 20, RICH: 20, "third": 20}
    assert sum(moved.values()) == 60 and moved[RICH] > 30
    assert min(moved.values()) >= 4 * 3 * 0.2, "the floor of each round"
    past = past_of(undisturbed)
    past.store.close()
    assert len(past.summary.groups) > len(uniform.summary.groups) == 4


def test_each_round_says_where_its_trials_went_and_what_they_gave(undisturbed: Path) -> None:
    past = past_of(undisturbed)
    past.store.close()
    assert past.rounds is not None
    gains = past.rounds.gains(undisturbed)
    assert [sum(gain.trials for gain in gained.values()) for gained in gains] == [15] * 4
    assert [gained[Arm(QUIET, "")].trials for gained in gains] == [5, 3, 3, 3]
    assert gains[0][Arm(RICH, "")] == Gain(trials=5, violations=1, signatures=1)
    assert sum(gained[Arm(RICH, "")].signatures for gained in gains) == len(past.summary.groups)


def test_a_signature_is_new_in_the_first_round_that_found_it() -> None:
    def rows(*found: tuple[int, str, str]) -> pa.Table:
        columns = [list(column) for column in zip(*found, strict=True)]
        return pa.table(
            {"chunk_id": columns[0], "suite": ["a"] * len(found), "strategy": columns[1]}
            | {"signature": columns[2], "executions": [3] * len(found), "classes": [2] * len(found)}
        )

    book = GainCounter([0, 10])
    for wave in (rows((12, "pct", "x"), (11, "pct", "y")), rows((3, "pos", "x"), (4, "pct", "x"))):
        book.spent(wave)
        book.found(wave)
    first, second = book.gains()
    assert first == {Arm("a", name): Gain(1, 3, 2, 1, 1) for name in ("pos", "pct")}
    assert second == {Arm("a", "pct"): Gain(2, 6, 4, 2, 1)}


def test_seeds_of_a_suite_are_used_once_and_in_order(undisturbed: Path) -> None:
    for suite in SUITES:
        parts = [
            arm for each in contents(undisturbed) for arm in each["arms"] if arm["suite"] == suite
        ]
        assert parts[0]["seed_lo"] == 100
        assert all(one["seed_hi"] == other["seed_lo"] for one, other in itertools.pairwise(parts))
    rows = read_trials(undisturbed)
    assert rows.group_by(["suite", "seed"]).aggregate([]).num_rows == rows.num_rows
    assert len(set(rows["chunk_id"].to_pylist())) == past_chunks(undisturbed)


def past_chunks(directory: Path) -> int:
    past = past_of(directory)
    past.store.close()
    assert past.rounds is not None and past.done == set(range(past.rounds.chunk_count))
    return past.rounds.chunk_count


def kill(directory: Path, at: int, *, before: bool) -> bool:
    with pytest.MonkeyPatch.context() as patch:
        Mortal(patch, at, before=before)
        try:
            session(directory, *SHORT)
        except Killed:
            return True
    return False


def test_each_kill_point_ends_with_the_rounds_and_trials_of_an_undisturbed_run(
    tmp_path: Path,
) -> None:
    undisturbed = tmp_path / "undisturbed"
    session(undisturbed, *SHORT)
    points = 0
    while kill(tmp_path / f"{points}", points + 1, before=points % 4 == 0):
        directory = tmp_path / f"{points}"
        assert session(directory, *SHORT).status == "finished"
        assert stable_rows(read_trials(directory)) == stable_rows(read_trials(undisturbed))
        assert contents(directory) == contents(undisturbed)
        assert not list(directory.rglob(".*")), "nothing half written is left"
        points += 2
    assert points > 40, "a run has many moments"


def test_a_chunk_that_failed_in_a_round_is_made_up_for_later(tmp_path: Path) -> None:
    def session_with(trial: Callable[[Suite, int, TrialOptions], TrialResult]) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tests.campaign.test_rounds.rich_trial", trial)
            return session(tmp_path / "run")

    def thirsty(suite: Suite, seed: int, options: TrialOptions) -> TrialResult:
        if (suite.name, seed) == (QUIET, 102):
            raise OverflowError("no room")
        return honest(suite, seed, options)

    honest = rich_trial
    first = session_with(thirsty)
    assert first.status == "failed" and [failure.message for failure in first.failures]
    decided = contents(tmp_path / "run")
    assert len(decided) == 4, "the rounds after it went on"
    assert first.summary.trials < 60
    assert session(tmp_path / "run").summary.trials == 60
    assert contents(tmp_path / "run") == decided


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a round is missing": (lambda run: (run / "rounds" / round_name(1)).unlink(), "lacks a round"),
    "half a round": (
        lambda run: (run / "rounds" / round_name(1)).write_text('{"version": 1'),
        "round-00001",
    ),
    "a newer round": (
        lambda run: rewrite(run, version=3),
        "has version 3, this release reads up to 2",
    ),
    "a round of other arms": (
        lambda run: rewrite(run, arms=[]),
        "arms is \\[\\]; it should be a list with an arm",
    ),
    "a round without arms": (lambda run: rewrite(run, arms=7), "arms is 7; it should be a list"),
    "a round of other chunks": (
        lambda run: rewrite(run, first_chunk=0),
        "does not follow from the run's plan",
    ),
    "smaller chunks": (
        lambda run: rewrite(run, chunk_seeds=1),
        "does not follow from the run's plan",
    ),
    "seeds twice": (lambda run: shift(run, -1), "left out or there twice"),
    "seeds left out": (lambda run: shift(run, 1), "left out or there twice"),
    "no settings": (lambda run: settle(run, {}), "rounds is missing; it should be an integer"),
    "other settings": (
        lambda run: settle(run, {"rounds": 3, "floor": 0.2, "strategies": []}),
        "damaged",
    ),
    "a strategy on real threads": (
        lambda run: settle(run, {"rounds": 4, "floor": 0.2, "strategies": ["pct"]}),
        r'strategies is \["pct"\]; it should be the engine',
    ),
}


def rewrite(run: Path, **changes: Any) -> None:
    path = run / "rounds" / round_name(1)
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def shift(run: Path, by: int) -> None:
    arms = contents(run)[1]["arms"]
    rewrite(run, arms=[{**arms[0], "seed_lo": arms[0]["seed_lo"] + by}, *arms[1:]])


def settle(run: Path, settings: dict[str, Any]) -> None:
    facts = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**facts, "rounds": settings}))


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_rounds_are_refused_in_one_sentence(
    undisturbed: Path, tmp_path: Path, name: str
) -> None:
    damage, message = DAMAGE[name]
    shutil.copytree(undisturbed, tmp_path / "run")
    damage(tmp_path / "run")
    for _ in range(2):
        with pytest.raises(UsageError, match=message) as refused:
            past_of(tmp_path / "run")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "1 to 10,000 rounds, not 0"),
        ({"rounds": 21}, "a round of 2 trials is too short for 3 arms"),
        ({"floor": 1.5}, "0 to 1, not 1.5"),
        ({"strategies": ("pct", "pct")}, "each strategy once"),
    ],
)
def test_rounds_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    good = {"plan": rounds_of(20, 4).plan, "strategies": (), "rounds": 4, "floor": 0.2}
    with pytest.raises(UsageError, match=message):
        Rounds(**{**good, **changes})


# Under the engine.

STRATEGIES = ("random", "pct")
HIDING, VARIED = "hiding", "varied"


def engine_run(
    directory: Path, *, runner: str = "inline", rounds: int = 4, mutant: str | None = None
) -> Rounds:
    """Run three suites: one with few classes and the mutant, two with many and no failure."""
    options = TrialOptions(
        engine=CONTROLLED, module=str(toys_path(checked=True)), mutant=mutant, executions=60
    )
    module = load_checked(options.module)
    suites = {
        name: Suite(
            name=name,
            subject=subject,
            summary="A toy.",
            mix=mix,
            settings={"start": (90, 100)},  # no call has so high a number
            controlled=ControlledSize((2, 2), calls),
        )
        for name, subject, mix, calls in (
            (HIDING, "counter", {"add": 1}, (1, 1)),
            (VARIED, "tattler", {}, (2, 3)),
            ("second", "tattler", {}, (2, 2)),
        )
    }
    source = Rounds(Plan(tuple(suites), 0, 24, 4, options), STRATEGIES, rounds, 0.2)
    result = InlineRunner(suites) if runner == "inline" else PoolRunner(suites, workers=2)
    store = RunStore(directory)
    job = Job("a-run", module.BUILD_ID, options)
    assert run_campaign(source, job, result, store, wave_seconds=0.0).status == "finished"
    result.close()
    store.close()
    return source


@pytest.fixture(scope="module")
def under_the_engine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rounds]:
    directory = tmp_path_factory.mktemp("engine") / "run"
    return directory, engine_run(directory)


def classes_of(directory: Path) -> int:
    return sum(read_trials(directory)["classes"].to_pylist())


def test_the_same_rounds_follow_in_other_processes(
    under_the_engine: tuple[Path, Rounds], tmp_path: Path
) -> None:
    directory, source = under_the_engine
    other = engine_run(tmp_path / "pool", runner="pool")
    assert contents(tmp_path / "pool") == contents(directory)
    assert stable_rows(read_trials(tmp_path / "pool")) == stable_rows(read_trials(directory))
    assert other.gains(tmp_path / "pool") == source.gains(directory)


def test_rounds_see_more_classes_than_equal_parts_do(
    under_the_engine: tuple[Path, Rounds], tmp_path: Path
) -> None:
    directory, source = under_the_engine
    engine_run(tmp_path / "equal", rounds=1)
    assert classes_of(directory) > classes_of(tmp_path / "equal"), "for the same number of trials"
    spent = Counter(
        Arm(row["suite"], row["strategy"]) for row in read_trials(directory).to_pylist()
    )
    assert set(spent) == set(source.arms) and min(spent.values()) >= 4


def test_a_suite_in_which_a_mutant_hides_gets_trials_while_that_is_news(
    under_the_engine: tuple[Path, Rounds], tmp_path: Path
) -> None:
    def of_suite(source: Rounds, directory: Path) -> list[int]:
        gains = source.gains(directory)
        return [
            sum(gain.trials for arm, gain in gained.items() if arm.suite == HIDING)
            for gained in gains
        ]

    directory, source = under_the_engine
    with_mutant = engine_run(tmp_path / "mutant", rounds=6, mutant="T01")
    found = of_suite(with_mutant, tmp_path / "mutant")
    without = of_suite(source, directory)
    assert without[0] == 6 and max(without[1:]) < 6, "without the mutant: an equal part, then less"
    assert found[0] == 4 and min(found[1 : 1 + WINDOW]) > 4, (
        "with it: more than that, as long as it counts"
    )
    assert max(found[1 + WINDOW :]) < 4, "and no longer"
