"""The catalogue of mutants: one module for each file of the core that they change."""

from __future__ import annotations

import importlib

from stress.mutants.catalogue.mutant import Mutant
from stress.mutants.catalogue.without_memory import MUTANTS as WITHOUT_MEMORY

# In the order in which they are listed and swept. Those of without_memory are in neither.
FILES: tuple[str, ...] = (
    "refcount",
    "stamped_lock",
    "object_pool",
    "mpsc_queue",
    "read_count",
    "payload_memory",
    "entry",
    "parsed_value",
    "receive_buffer",
    "position_map",
    "map_directory",
    "map_pages",
    "entry_wrapper",
    "range_cache",
    "policy_pass",
    "eviction_policy",
    "removal_queue",
    "inflight_limiter",
    "pending_table",
    "pending_reads",
    "cursor_registry",
    "active_groups",
    "active_cursors",
    "cursor_heap",
    "ack_ranges",
    "ack_codec",
    "ack_state",
    "delay_bucket",
    "delayed_tracker",
    "delayed_table",
    "delayed_views",
    "delayed_manager",
    "stash_queue",
    "ledger_scan",
    "lru",
    "s3_fifo",
    "fewest_reads",
    "cache_manager",
    "answers",
    "concurrent_answers",
)

CATALOGUE: tuple[Mutant, ...] = tuple(
    mutant
    for file in FILES
    for mutant in importlib.import_module(f"stress.mutants.catalogue.{file}").MUTANTS
)

__all__ = ["CATALOGUE", "WITHOUT_MEMORY", "Mutant"]
