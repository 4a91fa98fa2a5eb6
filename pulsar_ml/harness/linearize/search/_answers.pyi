from collections.abc import Callable, Hashable, Iterable
from typing import Any

from typing_extensions import disjoint_base

from pulsar_ml.harness.histories.history import Call

class StatesFull(MemoryError): ...

@disjoint_base
class Numbered: ...

@disjoint_base
class Answers:
    step: Callable[[Any, Call], Iterable[Any]]
    key_of: Callable[[Any], Hashable] | None
    states: list[Any]
    calls: list[Call]
    pure: list[bool]
    numbers: dict[Any, int]
    memory: int
    state_bytes: int
    most_states: int
    answer_count: int

    def number(self, state: Any) -> int: ...
    def answer(self, state: int, symbol: int) -> list[int]: ...
