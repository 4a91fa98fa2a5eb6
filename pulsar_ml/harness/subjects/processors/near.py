"""The processors of this machine, near ones side by side."""

from __future__ import annotations

import functools
import os
from pathlib import Path

TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology"


def near_processors(end: int) -> list[int]:
    """The processors below ``end`` that this process may use; near ones stand side by side.

    Those of one core are nearest, then those of one package, by what Linux says about them.
    """
    return sorted((one for one in os.sched_getaffinity(0) if one < end), key=place)


@functools.cache
def place(processor: int) -> tuple[int, int, int]:
    """The package, the core and the number of a processor; the number alone where it is unknown."""
    folder = Path(TOPOLOGY.format(processor))
    try:
        package = int((folder / "physical_package_id").read_text())
        core = int((folder / "core_id").read_text())
    except (OSError, ValueError):
        return 0, 0, processor
    return package, core, processor
