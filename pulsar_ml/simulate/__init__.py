"""Workloads on a virtual clock over the real cache: what a setting or a policy would do to a broker.

A workload (:mod:`~pulsar_ml.simulate.workload`) says which topics are written and read, and how; a
variant, which policy and settings the cache gets. :func:`simulate` plays one under the other: time is
virtual, everything random comes from the seed, the entries and the cache are the product's.
"""

from __future__ import annotations

from pulsar_ml.simulate.result import Result
from pulsar_ml.simulate.run import simulate
from pulsar_ml.simulate.variant import VARIANTS, Variant
from pulsar_ml.simulate.workload import Workload, built_in, load_workload

__all__ = ["VARIANTS", "Result", "Variant", "Workload", "built_in", "load_workload", "simulate"]
