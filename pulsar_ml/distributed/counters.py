"""Counts of finished trials by suite, sent by tasks to the driver while a wave runs.

A repeated task is counted twice, so the counts feed nothing but progress and Spark's metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.accumulators import AccumulatorParam

NAMES = ("trials", "violations", "executions", "classes")
Counts = dict[str, tuple[int, ...]]  # of NAMES, by suite

if TYPE_CHECKING:
    _Param = AccumulatorParam[Counts]
else:
    _Param = object  # Spark asks for the methods only, and without PySpark there is no base class


class AddCounts(_Param):
    """Adds the counts of two tasks."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:
        for suite, counts in value2.items():
            known = value1.get(suite, (0,) * len(NAMES))
            value1[suite] = tuple(map(sum, zip(known, counts, strict=True)))
        return value1


class TaskCounters:
    """The driver's end of the counters, also as metrics of Spark.

    Metrics are ``pulsar_ml.SUITE.trials`` (violations, executions, classes), ``pulsar_ml.wave``
    and ``pulsar_ml.round``.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        # They go to the tasks. Each is of every other job, as two are under way at most.
        self._accumulators = [context.accumulator({}, AddCounts()) for _ in range(2)]
        self._metrics: dict[str, Any] = {}
        self._shown: dict[str, int] = {}

    def of_job(self, number: int) -> Accumulator[Counts]:
        """The counters of a job's tasks, which job ``number + 2`` goes on with."""
        return self._accumulators[number % 2]

    def counts(self) -> Counts:
        """The counts of all jobs."""
        one, other = (accumulator.value for accumulator in self._accumulators)
        return AddCounts().addInPlace(dict(one), dict(other))

    def publish(self, wave: int, stage: int) -> None:
        """Brings the metrics up to date."""
        now = {"pulsar_ml.wave": wave, "pulsar_ml.round": stage}
        for suite, counts in self.counts().items():
            now |= {
                f"pulsar_ml.{suite}.{name}": count
                for name, count in zip(NAMES, counts, strict=True)
            }
        self._register([name for name in now if name not in self._metrics])
        for name, value in now.items():
            if more := value - self._shown.get(name, 0):
                self._metrics[name].add(more)
        self._shown = now

    def _register(self, names: list[str]) -> None:
        if not names:
            return
        jvm: Any = self._context._jvm
        java = self._context._jsc.sc()
        result = {name: java.longAccumulator(name) for name in names}
        source = getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$")
        getattr(source, "MODULE$").register(java, jvm.PythonUtils.toScalaMap(result))
        self._metrics |= result


def since(
    before: Mapping[str, tuple[int, ...]], now: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """The increase summed over all suites, in the order of ``NAMES``."""
    sums = [
        tuple(map(sum, zip((0,) * len(NAMES), *counts.values(), strict=True)))
        for counts in (before, now)
    ]
    return tuple(later - earlier for earlier, later in zip(*sums, strict=True))
