from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from pulsar_ml.harness.histories.history import Call, History, Signature
from pulsar_ml.harness.linearize.search._answers import Numbered

ENDS: str

@disjoint_base
class ModelState(Numbered):
    key: tuple[Hashable, ...]
    whole: Any
    busy: Sequence[int]

    def model(self) -> Any: ...
    def __sizeof__(self) -> int: ...

@disjoint_base
class CallKind:
    def __init__(self, name: str, weak: Container[str], spans: Container[str]) -> None: ...

@disjoint_base
class Reached:
    state: ModelState
    ways: tuple[tuple[int, int], ...]

    def __init__(self, state: ModelState, ways: tuple[tuple[int, int], ...]) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

@disjoint_base
class Sequential:
    by_thread: bool
    anew: Callable[[], Sequential]
    weak: frozenset[str]
    spans: frozenset[str]
    foresees: bool
    hides: bool
    idle: Callable[[str, Any], bool] | None
    fits: Callable[..., bool] | None
    states: dict[tuple[int, ...], ModelState]
    start: ModelState

    def __init__(
        self,
        factory: Any,
        settings: Mapping[str, int],
        threads: int,
        *,
        fresh: bool = False,
        scarce: bool = False,
    ) -> None: ...
    def init(self) -> ModelState: ...
    def forget(self) -> None: ...
    def state(self, model: Any, before: ModelState | None = None) -> ModelState: ...
    def pure(self, call: Call) -> bool: ...
    def ends(self, call: Call) -> bool: ...
    def over(self, call: Call) -> bool: ...
    def step(self, state: ModelState, call: Call) -> Iterable[ModelState]: ...
    def after_hidden(self, state: ModelState, call: Call) -> Iterable[ModelState]: ...
    def reached(self, state: ModelState) -> tuple[Reached, ...]: ...
    def after(self, state: ModelState, call: Call) -> tuple[ModelState, ...]: ...
    def describe(self, call: Call) -> str: ...

def signatures_of(
    model: Sequential, signatures: tuple[Signature, ...]
) -> tuple[Signature, ...]: ...
def with_ends(model: Sequential, history: History) -> tuple[NDArray[np.void], NDArray[np.intp]]: ...
