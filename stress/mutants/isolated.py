"""Runs what may destroy its process in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class ProcessLostError(RuntimeError):
    """The process died of what it ran."""


def isolated(function: Callable[Given, Answer], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
    """What ``function`` answers in a forked child. ProcessLostError when the child died of it.

    The engine catches most crashes of code under test; a mutant that writes where the engine or Python keeps
    something is beyond that.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        try:
            return pool.submit(function, *args, **kwargs).result()
        except BrokenProcessPool as error:
            raise ProcessLostError(f"{function.__name__} did not come to its end: {error}") from None
