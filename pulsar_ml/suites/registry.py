"""All suites by name. Each structure has a module in this package that defines ``SUITE``."""

from __future__ import annotations

import importlib

from pulsar_ml.campaign.trial.suite import Suite

# The modules of this package that define a suite, in the order in which they are listed and run.
STRUCTURES: tuple[str, ...] = (
    "refcount",
    "stamped_lock",
    "object_pool",
    "payload_memory",
    "mpsc_queue",
    "read_count",
    "entry",
    "receive_buffer",
    "position_map",
    "entry_wrapper",
    "range_cache",
    "removal_queue",
    "inflight_limiter",
    "pending_reads",
    "cache_manager",
    "eviction_policy",
    "expected_reads",
    "broker_cache",
    "active_cursors",
    "cursor_heap",
    "ack_state",
    "delayed_tracker",
    "delayed_manager",
)


def collect(structures: tuple[str, ...]) -> dict[str, Suite]:
    suites = [
        importlib.import_module(f"pulsar_ml.suites.{structure}").SUITE for structure in structures
    ]
    return {suite.name: suite for suite in suites}


SUITES: dict[str, Suite] = collect(STRUCTURES)
