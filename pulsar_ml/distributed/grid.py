"""Plays a grid of simulations on Spark, one task for each point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pulsar_ml.distributed.jobs import results_of
from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.grid import Point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "pulsar_ml simulate"
Played = list[tuple[Point, Mapping[str, Any]]]


def play(
    session: SparkSession, points: Sequence[Point], played: Played, show: Callable[[int], object]
) -> None:
    """Appends each point with its result to ``played``, a wave of tasks at a time."""
    context = session.sparkContext
    wave = 4 * context.defaultParallelism
    context.setJobGroup(GROUP, GROUP, interruptOnCancel=True)
    for start in range(0, len(points), wave):
        part = points[start : start + wave]
        plain = [(p.workload, p.text, p.seed, dict(p.settings)) for p in part]
        try:
            found = [json.loads(text) for text in results_of(context, len(part), task_for(plain))]
        except KeyboardInterrupt:
            context.cancelJobGroup(GROUP)
            raise
        for point, result in zip(part, found, strict=True):
            if "error" in result:
                raise UsageError(result["error"])
            played.append((point, result))
        show(len(played))


def task_for(
    plain: list[tuple[str, str, int, dict[str, Any]]],
) -> Callable[[Iterable[int]], Iterator[str]]:
    """The function of tasks: results as JSON; executors need an installed pulsar_ml, no more."""

    def run(numbers: Iterable[int]) -> Iterator[str]:
        from pulsar_ml.errors import PulsarMlError
        from pulsar_ml.simulate.grid import Point, run_point

        for number in numbers:
            try:
                result = run_point(Point(*plain[number])).to_json()
                del result["timeline"]
            except PulsarMlError as error:
                result = {"error": str(error)}
            yield json.dumps(result)

    return run
