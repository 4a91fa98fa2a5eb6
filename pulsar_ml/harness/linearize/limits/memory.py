"""The memory limit of a check: set for a block, for everything that the check takes together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pulsar_ml.harness.linearize.limits import _memory


class Bounded:
    """True while a limit is set; a check inside another one has the limit of the outer one."""

    active = False


@contextmanager
def bounded(memory: int) -> Iterator[None]:
    """Let searches in the block give up when the process has ``memory`` bytes more than now."""
    if Bounded.active:
        yield
        return
    Bounded.active = True
    _memory.limit(memory)
    try:
        yield
    finally:
        _memory.no_limit()
        Bounded.active = False
