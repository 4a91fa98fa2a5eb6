"""A grid of settings for one workload, and which point of it serves best."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.result import Result
from pulsar_ml.simulate.run import simulate
from pulsar_ml.simulate.variant import Variant
from pulsar_ml.simulate.workload import parse_workload

# What is to be small, by the name of the objective.
OBJECTIVES: Mapping[str, str] = {
    "storage_entries": "entries read from storage",
    "storage_reads": "reads of storage",
    "storage_bytes": "bytes read from storage",
    "miss_rate": "share of requested entries that the cache did not have",
}


@dataclass(frozen=True, slots=True)
class Point:
    """Settings of one run; plain data, so that it can travel.

    ``text`` is the workload's TOML, ``workload`` where it came from.
    """

    workload: str
    text: str
    seed: int
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scored:
    """The mean of the objective over the seeds of one choice of settings, and what it cost in memory."""

    settings: Mapping[str, Any]
    objective: float
    hit_rate: float
    mean_pinned_bytes: float
    max_pinned_bytes: int
    eviction_steps: float
    seeds: int


def parse_axis(text: str) -> tuple[str, tuple[str, ...]]:
    """``KEY=VALUE,VALUE`` of a command line."""
    key, equals, values = text.partition("=")
    found = tuple(value.strip() for value in values.split(",") if value.strip())
    if not equals or not key.strip() or not found:
        raise UsageError(f"{text!r} should be KEY=VALUE,VALUE,...")
    return key.strip(), found


def points(
    workload: str,
    text: str,
    axes: Mapping[str, Sequence[str]],
    base: Mapping[str, Any],
    seeds: Sequence[int],
) -> list[Point]:
    """Every combination of the axes over ``base``, with each seed."""
    names = list(axes)
    combinations = itertools.product(*(axes[name] for name in names))
    return [
        Point(workload, text, seed, {**base, **dict(zip(names, values, strict=True))})
        for values in combinations
        for seed in seeds
    ]


def run_point(point: Point) -> Result:
    """Simulate one point. Raises UsageError or ConfigError for settings that do not fit."""
    workload = parse_workload(point.text, point.workload)
    return simulate(workload, Variant("grid", "", point.settings), seed=point.seed)


def scored(results: Sequence[tuple[Point, Mapping[str, Any]]], objective: str) -> list[Scored]:
    """The choices of settings, the best first: the smallest objective, and then the least memory.

    ``results`` pairs each point with its result as plain data (Result.to_json).
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Point, Mapping[str, Any]]]] = {}
    for point, result in results:
        key = tuple(sorted((name, str(value)) for name, value in point.settings.items()))
        groups.setdefault(key, []).append((point, result))
    found = [
        Scored(
            settings=group[0][0].settings,
            objective=_mean(group, objective),
            hit_rate=_mean(group, "hit_rate"),
            mean_pinned_bytes=_mean(group, "mean_pinned_bytes"),
            max_pinned_bytes=max(result["max_pinned_bytes"] for _, result in group),
            eviction_steps=_mean(group, "eviction_steps"),
            seeds=len(group),
        )
        for group in groups.values()
    ]
    return sorted(found, key=lambda each: (each.objective, each.mean_pinned_bytes))


def _mean(group: Sequence[tuple[Point, Mapping[str, Any]]], name: str) -> float:
    values = [1 - r["hit_rate"] if name == "miss_rate" else r[name] for _, r in group]
    return sum(values) / len(values)
