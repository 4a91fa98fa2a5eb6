"""A grid of settings for one workload, simulated point by point and ranked by an objective."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.choices import LEAST_GAIN, MIB
from pulsar_ml.simulate.result import Result
from pulsar_ml.simulate.run import simulate
from pulsar_ml.simulate.variant import Variant
from pulsar_ml.simulate.workload import parse_workload

# Objectives, all of them to be minimized, with their descriptions.
OBJECTIVES: Mapping[str, str] = {
    "storage_entries": "entries read from storage",
    "storage_reads": "reads of storage",
    "storage_bytes": "bytes read from storage",
    "miss_rate": "share of requested entries that the cache did not have",
}


@dataclass(frozen=True, slots=True)
class Point:
    """The arguments of one simulation, as plain data that can be sent to another process.

    ``text`` is the workload's TOML, and ``workload`` its name or file.
    """

    workload: str
    text: str
    seed: int
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """The mean figures of one choice of settings over its seeds.

    ``ties`` are other choices with exactly the same figures.
    """

    settings: Mapping[str, Any]
    objective: float
    hit_rate: float
    joined_rate: float
    p99_millis: float
    mean_pinned_bytes: float
    max_pinned_bytes: int
    eviction_steps: float
    seeds: int
    ties: tuple[Mapping[str, Any], ...] = ()


def parse_axis(text: str) -> tuple[str, tuple[str, ...]]:
    """Parses ``KEY=VALUE,VALUE`` from a command line."""
    key, equals, values = text.partition("=")
    found = tuple(value.strip() for value in values.split(",") if value.strip())
    if not equals or not key.strip() or not found:
        raise UsageError(f"{text!r} is not an axis of the grid; write KEY=VALUE,VALUE,...")
    return key.strip(), found


def points(
    workload: str,
    text: str,
    axes: Mapping[str, Sequence[str]],
    base: Mapping[str, Any],
    seeds: Sequence[int],
) -> list[Point]:
    """The points of ``base`` alone, then of every combination of the axes over it.

    There is one for each seed.
    """
    names = list(axes)
    combinations = itertools.product(*(axes[name] for name in names))
    today = [Point(workload, text, seed, dict(base)) for seed in seeds]
    return today + [
        Point(workload, text, seed, {**base, **dict(zip(names, values, strict=True))})
        for values in combinations
        for seed in seeds
    ]


def run_point(point: Point) -> Result:
    """Simulates one point. Raises UsageError or ConfigError for invalid settings."""
    workload = parse_workload(point.text, point.workload)
    return simulate(workload, Variant("grid", "", point.settings), seed=point.seed)


def scored(results: Sequence[tuple[Point, Mapping[str, Any]]], objective: str) -> list[Scored]:
    """Ranks the choices of settings by objective, and then by memory; merges equal ones as ties.

    ``results`` pairs each point with its result as plain data (Result.to_json).
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Point, Mapping[str, Any]]]] = {}
    for point, result in results:
        key = tuple(sorted((name, str(value)) for name, value in point.settings.items()))
        groups.setdefault(key, []).append((point, result))
    scores = [
        Scored(
            settings=group[0][0].settings,
            objective=_mean(group, objective),
            hit_rate=_mean(group, "hit_rate"),
            joined_rate=_mean(group, "joined_rate"),
            p99_millis=sum(result["read_millis"]["p99"] for _, result in group) / len(group),
            mean_pinned_bytes=_mean(group, "mean_pinned_bytes"),
            max_pinned_bytes=max(result["max_pinned_bytes"] for _, result in group),
            eviction_steps=_mean(group, "eviction_steps"),
            seeds=len(group),
        )
        for group in groups.values()
    ]
    ranked: dict[tuple[object, ...], Scored] = {}
    for score in sorted(scores, key=lambda score: (score.objective, score.mean_pinned_bytes)):
        figures = tuple(value for name, value in asdict(score).items() if name != "settings")
        first = ranked.setdefault(figures, score)
        if first is not score:
            ranked[figures] = replace(first, ties=(*first.ties, score.settings))
    return list(ranked.values())


def _mean(group: Sequence[tuple[Point, Mapping[str, Any]]], name: str) -> float:
    values: list[float] = [
        1 - result["hit_rate"] if name == "miss_rate" else result[name] for _, result in group
    ]
    return sum(values) / len(values)


def is_base(score: Scored, base: Mapping[str, Any]) -> bool:
    """True for the choice of ``base`` alone, also when it is a tie of another one."""
    return any(dict(settings) == dict(base) for settings in (score.settings, *score.ties))


def grid_advice(found: Sequence[Scored], today: Scored) -> str:
    """One sentence: the settings with the least objective, or to keep today's."""
    best = found[0]
    if best is today or best.objective >= today.objective * (1 - LEAST_GAIN):
        return "Keep today's settings: no combination has an objective that is 1 % smaller."
    changed = ", ".join(
        f"{key}={value}"
        for key, value in best.settings.items()
        if key not in today.settings or str(today.settings[key]) != str(value)
    )
    return (
        f"Set {changed}: the objective is {1 - best.objective / today.objective:.1%} smaller, "
        f"with {best.mean_pinned_bytes / MIB:,.1f} MiB on average instead of "
        f"{today.mean_pinned_bytes / MIB:,.1f}."
    )
