"""The catalogue of mutants, one module for each file of the core they change."""

from __future__ import annotations

import importlib

from stress.mutants.catalogue.mutant import Mutant

# In the order in which they are listed and swept.
FILES: tuple[str, ...] = (
    "refcount",
    "stamped_lock",
    "object_pool",
    "mpsc_queue",
    "read_count",
    "position_map",
    "map_directory",
    "entry_wrapper",
    "range_cache",
    "removal_queue",
)

CATALOGUE: tuple[Mutant, ...] = tuple(
    mutant for file in FILES for mutant in importlib.import_module(f"stress.mutants.catalogue.{file}").MUTANTS
)

__all__ = ["CATALOGUE", "Mutant"]
