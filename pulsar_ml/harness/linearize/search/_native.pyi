from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from pulsar_ml.harness.linearize.search._answers import Answers

ANSWERS: tuple[str, ...]
RECORD: np.dtype[np.void]

@disjoint_base
class Checker:
    by_thread: bool
    memory: int
    most_steps: int
    deadline_ns: int
    searches: int
    looked_up: int

    def __new__(
        cls,
        learn: Callable[[int, tuple[int, ...]], tuple[bool, int, bool, int]] | Answers,
        answer: Callable[[int, int], Sequence[int]] | None = None,
        leads: Callable[[int, int], bool] | None = None,
        *,
        by_thread: bool = False,
        memory: int = ...,
    ) -> Self: ...
    def close(self) -> None: ...
    def release(self) -> None: ...
    def bytes(self) -> int: ...
    def row(self, symbol: int) -> tuple[int, ...]: ...
    def oracle(self) -> object: ...
    def symbols(self, records: NDArray[np.void], *, briefly: bool = False) -> NDArray[np.int32]: ...
    def search(
        self,
        records: NDArray[np.void],
        *,
        symbols: NDArray[np.int32] | None = None,
        chosen: NDArray[np.int32] | None = None,
        state: int = 0,
        parts: int = 1,
        criterion: int = 0,
        most_steps: int = ...,
        sparing: bool = False,
        ahead: bool = True,
        tried: bool = False,
    ) -> tuple[int, list[int], int, int, int]: ...
    def search_many(
        self,
        records: NDArray[np.void],
        *,
        state: int = 0,
        most_steps: int = ...,
        remember: bool = True,
    ) -> NDArray[np.int8]: ...

@disjoint_base
class Watch:
    fed: int
    blocked: int

    def __new__(
        cls, checker: Checker, *, state: int = 0, most_steps: int = ..., memory: int = ...
    ) -> Self: ...
    @property
    def answer(self) -> int: ...
    @property
    def steps(self) -> int: ...
    @property
    def configurations(self) -> int: ...
    def feed(self, records: NDArray[np.void]) -> int: ...
    def finish(self) -> int: ...
