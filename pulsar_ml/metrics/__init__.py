"""Pulsar's metrics of the cache, for OpenTelemetry and Prometheus.

::

    registry = Registry()
    registry.add_manager(manager)
    otel.export(registry)
    prometheus_client.REGISTRY.register(PrometheusCollector(registry, cluster="eu-west"))

A collection reads native counters, which are exact while no thread is inside the cache. The
libraries come with ``pulsar_ml[metrics]`` and are imported on first use.
"""

from __future__ import annotations

from pulsar_ml.metrics import otel
from pulsar_ml.metrics.names import FAMILIES, INSTRUMENTS, LEFT_OUT
from pulsar_ml.metrics.prometheus import PrometheusCollector
from pulsar_ml.metrics.quantities import Labelled, Registry

__all__ = [
    "FAMILIES",
    "INSTRUMENTS",
    "LEFT_OUT",
    "Labelled",
    "PrometheusCollector",
    "Registry",
    "otel",
]
