"""The metrics as a collector of prometheus_client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pulsar_ml.errors import UsageError
from pulsar_ml.metrics.names import FAMILIES, Family
from pulsar_ml.metrics.quantities import Quantities, Registry

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Periods:
    """Growth of the quantities over the last whole period.

    A period ends at the first look after its seconds are over; so it may be longer. Before the first one
    ended the growth is 0. Any thread may look.
    """

    def __init__(self, seconds: float, clock: Callable[[], float], first: Quantities) -> None:
        self.seconds = seconds
        self.clock = clock
        self.lock = threading.Lock()
        self.began = clock()
        self.first = first
        self.growth: dict[str, int] = {}
        self.lasted = 0.0

    def look(self, quantities: Quantities) -> tuple[Quantities, float]:
        """The growth over the last period and the seconds it took."""
        with self.lock:
            now = self.clock()
            if now - self.began >= self.seconds:
                self.growth = {
                    name: number - self.first.get(name, 0) for name, number in quantities.items()
                }
                self.lasted = now - self.began
                self.began, self.first = now, quantities
            return self.growth, self.lasted


class PrometheusCollector:
    """A custom collector: ``prometheus_client.REGISTRY.register(PrometheusCollector(registry))``.

    Each collection reads the registry once. Rates and evictions are those of the last whole period, as in
    Pulsar, where a period has 60 s. ``cluster`` is the label of that name on every value.

    Raises UsageError when prometheus_client is not installed.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        cluster: str = "standalone",
        period_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            import prometheus_client.core
        except ImportError:
            raise UsageError(
                "prometheus_client is not installed; install pulsar_ml[metrics]"
            ) from None
        if period_seconds <= 0:
            raise UsageError(f"period_seconds={period_seconds!r} must be above 0")
        self.families = prometheus_client.core
        self.registry = registry
        self.cluster = cluster
        self.periods = Periods(period_seconds, clock, registry.read())

    def describe(self) -> list[Metric]:
        """Nothing is known before it is collected."""
        return []

    def collect(self) -> Iterator[Metric]:
        quantities = self.registry.read()
        growth, seconds = self.periods.look(quantities)
        for family in FAMILIES:
            number: float | None = family.term.of(quantities)
            if number is not None:
                if family.kind in ("rate", "period"):
                    number = family.term.of(growth) or 0
                if family.kind == "rate":
                    number = number / seconds if seconds else 0.0
                yield self.metric(family, number)
        for gauge in self.registry.labelled:
            made = self.families.GaugeMetricFamily(
                gauge.name, gauge.description, labels=["cluster", *gauge.labels]
            )
            for labels, value in gauge.read():
                made.add_metric(self.with_cluster(labels), value)
            yield made

    def metric(self, family: Family, number: float) -> Metric:
        made = (
            self.families.CounterMetricFamily
            if family.kind == "counter"
            else self.families.GaugeMetricFamily
        )
        metric = made(family.name, family.description, labels=["cluster"])
        metric.add_metric([self.cluster], number)
        return metric

    def with_cluster(self, labels: Sequence[str]) -> list[str]:
        return [self.cluster, *labels]
