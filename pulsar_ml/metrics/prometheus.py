"""Exports the metrics through a collector of prometheus_client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pulsar_ml.errors import UsageError
from pulsar_ml.metrics.names import FAMILIES, Family
from pulsar_ml.metrics.quantities import Quantities, Registry

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Periods:
    """The growth of the quantities over the last whole period. Thread-safe.

    A period ends at the first update after its time is over, so it may be longer. Before the end of
    the first period the growth is 0.
    """

    def __init__(self, length_ms: int, clock: Callable[[], int], first: Quantities) -> None:
        self.length_ns = length_ms * 1_000_000
        self.clock = clock
        self.lock = threading.Lock()
        self.started = clock()
        self.first = first
        self.growth: dict[str, int] = {}
        self.duration_ns = 0

    def update(self, quantities: Quantities) -> tuple[Quantities, int]:
        """Takes the present quantities; returns the growth in the last period and its length."""
        with self.lock:
            now = self.clock()
            if now - self.started >= self.length_ns:
                self.growth = {
                    name: number - self.first.get(name, 0) for name, number in quantities.items()
                }
                self.duration_ns = now - self.started
                self.started, self.first = now, quantities
            return self.growth, self.duration_ns


class PrometheusCollector:
    """A custom collector: ``prometheus_client.REGISTRY.register(PrometheusCollector(registry))``.

    Each collection reads the registry once. Rates and evictions refer to the last whole period,
    like in Pulsar, where a period has 60 s. ``clock`` answers nanoseconds. Every value has the
    label ``cluster``.

    Raises UsageError when prometheus_client is not installed.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        cluster: str = "standalone",
        period_ms: int = 60_000,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        try:
            import prometheus_client.core
        except ImportError:
            raise UsageError(
                "prometheus_client is not installed: pip install 'pulsar_ml[metrics]'"
            ) from None
        if period_ms <= 0:
            raise UsageError(f"period_ms={period_ms!r} should be above 0")
        self.families = prometheus_client.core
        self.registry = registry
        self.cluster = cluster
        self.periods = Periods(period_ms, clock, registry.read())

    def describe(self) -> list[Metric]:
        """No metrics: prometheus_client then registers the collector without collecting."""
        return []

    def collect(self) -> Iterator[Metric]:
        quantities = self.registry.read()
        growth, duration_ns = self.periods.update(quantities)
        for family in FAMILIES:
            number: float | None = family.term.of(quantities)
            if number is not None:
                if family.kind in ("rate", "period"):
                    number = family.term.of(growth) or 0
                if family.kind == "rate":
                    number = number * 1e9 / duration_ns if duration_ns else 0.0
                yield self.metric(family, number)
        for gauge in self.registry.labelled:
            if gauge.exporter == "opentelemetry":
                continue
            metric = self.families.GaugeMetricFamily(
                gauge.name, gauge.description, labels=["cluster", *gauge.labels]
            )
            for labels, value in gauge.read():
                metric.add_metric([self.cluster, *labels], value)
            yield metric

    def metric(self, family: Family, number: float) -> Metric:
        family_class = (
            self.families.CounterMetricFamily
            if family.kind == "counter"
            else self.families.GaugeMetricFamily
        )
        metric = family_class(family.name, family.description, labels=["cluster"])
        metric.add_metric([self.cluster], number)
        return metric
