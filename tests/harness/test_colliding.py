"""Programs for the engine: their threads meet, their worlds vary, and they follow from a seed."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.campaign.trial.controlled import load_checked, program_of, rare_operations
from pulsar_ml.campaign.trial.trial import CHECKED, TrialOptions
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.subjects.colliding import Arguments, Draws, colliding_program, draw_theme
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.suites.registry import SUITES

SEEDS = range(120)


@pytest.fixture(scope="module")
def core() -> ModuleType:
    return load_checked(CHECKED)


def drawn(core: ModuleType, suite: str, seed: int) -> Program:
    subject = core.SUBJECTS[SUITES[suite].subject]
    return program_of(subject, SUITES[suite], seed, TrialOptions())


def meets(subject: Subject, program: Program, names: tuple[str, ...]) -> bool:
    """Two threads have calls with equal values of all the named arguments."""

    def values(thread: int) -> set[tuple[int, ...]]:
        found = set()
        for call in program.threads[thread]:
            arguments = subject.operations[int(call["code"])].arguments
            known = {
                argument.name: int(value)
                for argument, value in zip(arguments, call["arguments"], strict=False)
            }
            if set(names) <= set(known):
                found.add(tuple(known[name] for name in names))
        return found

    pairs = combinations(range(len(program.threads)), 2)
    return any(values(one) & values(other) for one, other in pairs)


@pytest.mark.parametrize(
    ("suite", "names", "least"),
    [
        ("range_cache", ("cache", "key"), 0.35),
        ("position_map", ("key", "map"), 0.15),
        ("delayed_manager", ("view", "message"), 0.15),
    ],
)
def test_threads_use_the_same_things(
    core: ModuleType, suite: str, names: tuple[str, ...], least: float
) -> None:
    """The control: calls that are drawn one by one meet in less than half as many programs."""
    subject = core.SUBJECTS[SUITES[suite].subject]
    size = SUITES[suite].controlled
    uniform = [
        Program.generate(
            subject,
            seed,
            threads=2 + seed % 2,
            operations=3 + seed % 4,
            mix=size.mix or SUITES[suite].mix,
            noise=False,
        )
        for seed in SEEDS
    ]
    now = sum(meets(subject, drawn(core, suite, seed), names) for seed in SEEDS) / len(SEEDS)
    before = sum(meets(subject, program, names) for program in uniform) / len(SEEDS)
    assert now >= least > 2 * before


def test_worlds_are_tight_roomy_and_mixed(core: ModuleType) -> None:
    subject = core.SUBJECTS["range_cache"]
    worlds = [drawn(core, "range_cache", seed).settings for seed in range(300)]
    lows = {setting.name: setting.low for setting in subject.settings}
    for name, (low, high) in {
        "keys": (4, 64),
        "queue_chunk_bits": (2, 6),
        "chunk_bits": (2, 8),
        "max_requeue": (0, 5),
    }.items():
        counts = Counter(world[name] for world in worlds)
        assert min(counts) == low and max(counts) == high
        assert 0.25 < counts[low] / 300 < 0.8, (name, counts)
    # Policies are alternatives: the first one is not more frequent than others.
    policies = Counter(world["policy"] for world in worlds)
    assert set(policies) == set(range(len(EVICTION_POLICIES))) and max(policies.values()) < 300 / 4
    sizes = [name for name in lows if name != "policy"]
    assert any(all(world[name] == lows[name] for name in sizes) for world in worlds)


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_programs_follow_from_their_seed_and_fit_their_subject(
    core: ModuleType, suite: str
) -> None:
    subject = core.SUBJECTS[SUITES[suite].subject]
    size = SUITES[suite].controlled
    least = 1 if size.lives else size.operations[0]  # a thread that meets a life may make one call
    for seed in range(12):
        program = drawn(core, suite, seed)
        assert program == drawn(core, suite, seed) != drawn(core, suite, seed + 1)
        assert size.threads[0] <= len(program.threads) <= size.threads[1]
        for calls in program.threads:
            assert len(calls) == 0 or least <= len(calls) <= size.operations[1]
            for call in calls:
                operation = subject.operations[int(call["code"])]
                assert operation.name not in size.left_out
                for argument, value in zip(
                    operation.arguments, call["arguments"].tolist(), strict=False
                ):
                    assert argument.low <= value <= argument.high
                assert not call["arguments"][len(operation.arguments) :].any()
        for setting in subject.settings:
            assert setting.low <= program.settings[setting.name] <= setting.high


def test_a_program_of_a_seed_never_changes(toys: ModuleType) -> None:
    program = colliding_program(toys.SUBJECTS["owned"], 17, threads=(2, 3), operations=(3, 6))
    assert program.digest() == "ab3999d72ad46714"
    assert Program.from_json(program.to_json()) == program


def test_one_thread_plays_a_role(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["owned"]
    for seed in range(60):
        program = colliding_program(subject, seed, threads=(3, 3), operations=(6, 6))
        for role in {operation.role for operation in subject.operations} - {0}:
            players = [
                any(subject.operations[int(call["code"])].role == role for call in calls)
                for calls in program.threads
            ]
            assert sum(players) <= 1


def test_rare_operations_occur_and_long_ones_do_not(core: ModuleType) -> None:
    cache, cursors = SUITES["cache_manager"], SUITES["active_cursors"]
    assert "stats" in rare_operations(core.SUBJECTS["cache_manager"], cache)
    assert "stats" not in cache.controlled.mix
    subject = core.SUBJECTS["active_cursors"]
    assert "update_stale" in rare_operations(subject, cursors)
    assert "churn" not in rare_operations(subject, cursors)
    programs = [drawn(core, "cache_manager", seed) for seed in SEEDS]
    code = core.SUBJECTS["cache_manager"].operation("stats").code
    assert any((calls["code"] == code).any() for one in programs for calls in one.threads)


def test_themes_are_small_subsets_or_the_mix() -> None:
    weights = [10, 1, 0, 1, 1, 1, 1]
    drawn = [draw_theme(Draws(seed), weights, [2], []) for seed in range(200)]
    assert {source for _, source in drawn} == {None}
    themes = [theme for theme, _ in drawn]
    whole = [theme for theme in themes if theme == weights]
    assert 10 <= len(whole) <= 45
    small = [theme for theme in themes if theme != weights]
    assert {sum(1 for weight in theme if weight) for theme in small} <= {2, 3, 4}
    assert any(theme[2] for theme in small) and sum(bool(theme[0]) for theme in small) > 100
    for seed in range(50):
        theme, source = draw_theme(Draws(seed), weights, [2], [3, 4])
        assert source in {3, 4} and theme[source]


def test_amounts_are_drawn_anew_and_keys_again(core: ModuleType) -> None:
    subject = core.SUBJECTS["removal_queue"]
    arguments = Arguments(subject, Draws(3))
    assert {argument.name for argument in arguments.shared} >= {"cache", "key"}
    free = subject.operation("free")
    amounts = {arguments.of(free.code)[0] for _ in range(200)}
    keys = Counter(arguments.of(subject.operation("get").code)[1] for _ in range(200))
    assert len(amounts) > 50 and 1 in amounts and 200 in amounts
    assert sum(count for _, count in keys.most_common(3)) > 100


def test_draws_are_one_stream_however_long() -> None:
    draws, again = Draws(9), Draws(9)
    assert [draws.below(100) for _ in range(1000)] == [again.below(100) for _ in range(1000)]
    values = [draws.magnitude(10, 1009) for _ in range(2000)]
    assert min(values) == 10 and max(values) > 900 and np.median(values) < 100


def test_sizes_out_of_range_are_refused(toys: ModuleType) -> None:
    subject = toys.SUBJECTS["owned"]
    for threads, operations in (((1, 65), (1, 2)), ((1, 2), (0, 0))):
        with pytest.raises(UsageError):
            colliding_program(subject, 1, threads=threads, operations=operations)
    assert all(
        len(colliding_program(subject, seed, threads=(n, n), operations=(2, 2)).threads) == n
        for seed, n in product(range(3), (1, 4))
    )


LIFE = ("put", "remove_range", "put")


def names_of(program: Program, thread: int) -> tuple[str, ...]:
    return tuple(program.operations[int(call["code"])] for call in program.threads[thread])


def test_in_half_of_the_programs_a_thread_lives_a_life_that_others_meet(core: ModuleType) -> None:
    """The control: without lives the same sequence hardly ever occurs."""
    subject = core.SUBJECTS["range_cache"]
    lives, others = (
        [
            colliding_program(subject, seed, threads=(2, 3), operations=(3, 6), lives=some)
            for seed in SEEDS
        ]
        for some in ([LIFE], [])
    )
    living = [program for program in lives if names_of(program, 0) == LIFE]
    assert 0.35 < len(living) / len(SEEDS) < 0.65
    assert sum(names_of(program, 0) == LIFE for program in others) <= 2
    equal = sum(
        program.threads[0]["arguments"][0][1] == program.threads[0]["arguments"][2][1]
        for program in living
    )
    assert equal > len(living) / 2  # the key that is put, removed and put again
    assert all(1 <= len(calls) <= 3 for program in living for calls in program.threads[1:])
    roles = {operation.name for operation in subject.operations if operation.role}
    assert not any(roles & {*names_of(program, 1)} for program in living)


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_lives_are_of_operations_that_any_thread_calls(core: ModuleType, suite: str) -> None:
    subject, size = core.SUBJECTS[SUITES[suite].subject], SUITES[suite].controlled
    for life in size.lives:
        assert len(life) <= size.operations[1]
        assert not any(subject.operation(name).role for name in life)
    known = {argument.name for one in subject.operations for argument in one.arguments}
    assert {*size.places} <= known


def test_half_of_the_lives_end_in_another_container(core: ModuleType) -> None:
    """Nothing else of their programs changes, and without places nothing does."""
    subject = core.SUBJECTS["cache_manager"]
    (cache,) = {
        argument
        for one in subject.operations
        for argument in one.arguments
        if argument.name == "cache"
    }

    def programs(*places: str) -> list[Program]:
        return [
            colliding_program(
                subject, seed, threads=(2, 3), operations=(3, 6), lives=[LIFE], places=places
            )
            for seed in SEEDS
        ]

    pairs = [pair for pair in zip(programs(), programs("cache"), strict=True) if pair[0] != pair[1]]
    assert 0.15 < len(pairs) / len(SEEDS) < 0.35  # half of the programs have a life
    for before, after in pairs:
        assert names_of(before, 0) == names_of(after, 0) == LIFE
        last = after.threads[0].copy()
        value = int(before.threads[0][-1]["arguments"][0])
        assert int(last[-1]["arguments"][0]) == (value + 1 if value < cache.high else cache.low)
        last[-1]["arguments"][0] = value
        assert last.tobytes() == before.threads[0].tobytes()
        for one, other in zip(before.threads[1:], after.threads[1:], strict=True):
            assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("duels", [1, 2, 4])
def test_one_of_so_many_programs_is_a_duel(core: ModuleType, duels: int) -> None:
    """One call meets a life, all are about one cache and one key, and their amounts are small."""
    subject = core.SUBJECTS["range_cache"]

    def programs(duels: int) -> list[Program]:
        return [
            colliding_program(
                subject, seed, threads=(2, 3), operations=(3, 6), lives=[LIFE], duels=duels
            )
            for seed in SEEDS
        ]

    def values(program: Program, name: str) -> set[int]:
        return {
            int(value)
            for calls in program.threads
            for call in calls
            for argument, value in zip(
                subject.operations[int(call["code"])].arguments, call["arguments"], strict=False
            )
            if argument.name == name
        }

    def is_duel(program: Program) -> bool:
        """Other programs have three threads, or longer ones, or other values."""
        return (
            [len(calls) for calls in program.threads] == [len(LIFE), 1]
            and names_of(program, 0) == LIFE
            and {*names_of(program, 1)} <= {*LIFE}
            and all(len(values(program, name)) == 1 for name in ("cache", "key"))
            and values(program, "width") <= {*range(4)}
        )

    assert abs(sum(map(is_duel, programs(duels))) / len(SEEDS) - 1 / duels) < 0.1
    assert sum(map(is_duel, programs(0))) / len(SEEDS) < 0.1


def test_spans_bound_arguments_by_name(core: ModuleType) -> None:
    subject = core.SUBJECTS["range_cache"]
    code = subject.operation("sweep").code

    def steps(**options: Any) -> list[int]:
        programs = [
            colliding_program(
                subject, seed, threads=(1, 1), operations=(9, 9), mix={"sweep": 1}, **options
            )
            for seed in range(20)
        ]
        return [
            int(call["arguments"][0])
            for program in programs
            for call in program.threads[0]
            if call["code"] == code
        ]

    assert {*steps(spans={"steps": (5, 6)})} == {5, 6}
    assert max(steps()) > 6


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_programs_of_one_thread_are_larger_unless_told(core: ModuleType, suite: str) -> None:
    subject, size = core.SUBJECTS[SUITES[suite].subject], SUITES[suite].alone
    for seed in range(4):
        program = program_of(subject, SUITES[suite], seed, TrialOptions(threads=1))
        (calls,) = program.threads
        assert size.operations[0] <= len(calls) <= size.operations[1]
        for call in calls:
            assert subject.operations[int(call["code"])].name not in size.left_out
            for argument, value in zip(
                subject.operations[int(call["code"])].arguments, call["arguments"], strict=False
            ):
                low, high = size.spans.get(argument.name, (argument.low, argument.high))
                assert low <= value <= high
        few = program_of(subject, SUITES[suite], seed, TrialOptions(threads=1, operations=7))
        assert len(few.threads[0]) == 7
