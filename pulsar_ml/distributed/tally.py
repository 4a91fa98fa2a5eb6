"""What tasks tell the driver when they end, by suite: for those who watch, while a wave runs. A task that is
repeated tells it twice, so nothing but progress and Spark's metrics is made of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

if TYPE_CHECKING:
    from pyspark import SparkContext

NAMES = ("trials", "violations", "executions", "classes")
Counts = dict[str, tuple[int, ...]]  # of NAMES, by suite


class Adding(AccumulatorParam[Counts]):
    """How the counts of two tasks become one."""

    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802  (Spark's name)
        for suite, counts in value2.items():
            known = value1.get(suite, (0,) * len(NAMES))
            value1[suite] = tuple(map(sum, zip(known, counts, strict=True)))
        return value1


class Tally:
    """The driver's end: what tasks have told so far, also as metrics of Spark.

    Metrics are called ``pulsar_ml.SUITE.trials`` (violations, executions, classes) ``pulsar_ml.wave``
    and ``pulsar_ml.round``.
    """

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self.told = context.accumulator({}, Adding())  # goes to the tasks
        self._metrics: dict[str, Any] = {}
        self._shown: dict[str, int] = {}

    def counts(self) -> Counts:
        return dict(self.told.value)

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
        made = {name: java.longAccumulator(name) for name in names}
        source = getattr(jvm.org.apache.spark.metrics.source, "LongAccumulatorSource$")
        getattr(source, "MODULE$").register(java, jvm.PythonUtils.toScalaMap(made))
        self._metrics |= made


def since(
    before: Mapping[str, tuple[int, ...]], now: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """What was added over all suites, as ``NAMES``."""
    sums = [
        tuple(map(sum, zip((0,) * len(NAMES), *counts.values(), strict=True)))
        for counts in (before, now)
    ]
    return tuple(later - earlier for earlier, later in zip(*sums, strict=True))
