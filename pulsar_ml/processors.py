"""The processors of this machine that a process may use."""

from __future__ import annotations

import os


def processor_count() -> int:
    """The number of processors that this process may use, which a container may limit."""
    return len(os.sched_getaffinity(0))
