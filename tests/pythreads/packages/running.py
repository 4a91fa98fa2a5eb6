"""Runs functions as threads of a test."""

from __future__ import annotations

import threading
from collections.abc import Callable


def together(*functions: Callable[[], object]) -> None:
    """Call each function in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
