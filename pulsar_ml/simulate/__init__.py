"""A simulator of broker workloads over the real cache, to compare eviction policies and settings.

A workload (:mod:`~pulsar_ml.simulate.workload`) describes topics, producers and subscriptions; a
variant is an eviction policy with settings. :func:`simulate` runs a workload under a variant: time
is virtual, all randomness comes from the seed, and the entries and the cache are the product's.
"""

from __future__ import annotations

from pulsar_ml.simulate.result import Result
from pulsar_ml.simulate.run import simulate
from pulsar_ml.simulate.variant import VARIANTS, Variant
from pulsar_ml.simulate.workload import Workload, built_in_workloads, load_workload

__all__ = [
    "VARIANTS",
    "Result",
    "Variant",
    "Workload",
    "built_in_workloads",
    "load_workload",
    "simulate",
]
