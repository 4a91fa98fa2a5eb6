"""Plays a grid of simulations on Spark, one task for each point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.grid import Point

if TYPE_CHECKING:
    import pyarrow as pa
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
        rows = session.range(0, len(part), 1, len(part)).mapInArrow(
            task_for(plain), "point long, result string"
        )
        try:
            found = {row.point: json.loads(row.result) for row in rows.collect()}
        except KeyboardInterrupt:
            context.cancelJobGroup(GROUP)
            raise
        for index, point in enumerate(part):
            if "error" in found[index]:
                raise UsageError(found[index]["error"])
            played.append((point, found[index]))
        show(len(played))


def task_for(
    plain: list[tuple[str, str, int, dict[str, Any]]],
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``; executors need an installed pulsar_ml and nothing else."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        from pulsar_ml.errors import PulsarMlError
        from pulsar_ml.simulate.grid import Point, run_point

        for batch in batches:
            indices = batch.column(0).to_pylist()
            results = []
            for index in indices:
                try:
                    result = run_point(Point(*plain[index])).to_json()
                    del result["timeline"]
                except PulsarMlError as error:
                    result = {"error": str(error)}
                results.append(json.dumps(result))
            yield pa.RecordBatch.from_pydict(
                {"point": pa.array(indices, pa.int64()), "result": results}
            )

    return run
