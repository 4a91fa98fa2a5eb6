"""Sequential models: what each structure's operations answer when nothing runs at the same time.

``pulsar_ml/specs/<structure>.py`` has one class, ``Model``. A model knows the operations of the
structure's table by name and the result of each as a function of all calls before it. Models
import nothing of the core, the structures or the operations: one that looked at the code would
prove nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

Answer = tuple[int, tuple[int, int, int, int]]

LEAST, MOST = -(2**63), 2**63 - 1  # of a word


class Model(Protocol):
    """The state of one instance.

    ``settings`` are the instance's creation settings, all of them; ``threads`` is the number of
    threads it was created for.
    """

    def __init__(self, settings: Mapping[str, int], threads: int) -> None: ...

    def step(self, operation: str, arguments: Sequence[int], *, thread: int = 0) -> Answer:
        """Apply one call of ``thread`` and return the status and the four words of its result."""
        ...


def answer(
    status: int = 0, first: int = 0, second: int = 0, third: int = 0, fourth: int = 0
) -> Answer:
    """A result; words left out are 0. Words are 64-bit integers, taken as signed ones."""
    words = first, second, third, fourth
    if not (
        LEAST <= first <= MOST
        and LEAST <= second <= MOST
        and LEAST <= third <= MOST
        and LEAST <= fourth <= MOST
    ):
        first, second, third, fourth = [(word + 2**63) % 2**64 - 2**63 for word in words]
        words = first, second, third, fourth
    return status, words


def unknown(model: str, operation: str) -> KeyError:
    """The error for an operation that a model does not know."""
    return KeyError(f"the model of {model} has no operation {operation!r}")
