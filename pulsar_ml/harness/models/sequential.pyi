from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from pulsar_ml.harness.histories.history import Call, History, Signature
from pulsar_ml.harness.linearize.search._answers import Numbered

ENDS: str

@disjoint_base
class State(Numbered):
    key: tuple[Hashable, ...]
    whole: Any
    busy: Sequence[int]

    def model(self) -> Any: ...
    def __sizeof__(self) -> int: ...

@disjoint_base
class Operation:
    def __init__(self, name: str, weak: Container[str], spans: Container[str]) -> None: ...

@disjoint_base
class Reached:
    state: State
    ways: tuple[tuple[int, int], ...]

    def __init__(self, state: State, ways: tuple[tuple[int, int], ...]) -> None: ...
    def __iter__(self) -> Iterator[Any]: ...

@disjoint_base
class Sequential:
    by_thread: bool
    anew: Callable[[], Sequential]
    weak: Mapping[str, str]
    spans: frozenset[str]
    foresees: bool
    hides: bool
    idle: Callable[[str, Any], bool] | None
    fits: Callable[..., bool] | None
    states: dict[tuple[int, ...], State]
    start: State

    def __init__(
        self, factory: Any, settings: Mapping[str, int], threads: int, *, fresh: bool = False
    ) -> None: ...
    def init(self) -> State: ...
    def state(self, model: Any, before: State | None = None) -> State: ...
    def pure(self, call: Call) -> bool: ...
    def ends(self, call: Call) -> bool: ...
    def over(self, call: Call) -> bool: ...
    def step(self, state: State, call: Call) -> Iterable[State]: ...
    def after_hidden(self, state: State, call: Call) -> Iterable[State]: ...
    def reached(self, state: State) -> tuple[Reached, ...]: ...
    def after(self, state: State, call: Call) -> tuple[State, ...]: ...
    def describe(self, call: Call) -> str: ...

def signatures_of(
    model: Sequential, signatures: tuple[Signature, ...]
) -> tuple[Signature, ...]: ...
def with_ends(model: Sequential, history: History) -> tuple[NDArray[np.void], NDArray[np.intp]]: ...
