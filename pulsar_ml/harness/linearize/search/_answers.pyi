from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

from pulsar_ml.harness.histories.history import Call, Decoder, Signature

def first_words(records: NDArray[np.void], operations: int) -> list[tuple[int, int]]: ...
def records_of_part(
    records: NDArray[np.void], chosen: NDArray[np.int32], until: int
) -> NDArray[np.void]: ...
def with_key_of(
    records: NDArray[np.void], values: tuple[object, ...], call: int, until: int = ...
) -> tuple[object, NDArray[np.int32]] | None: ...

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
    parts: list[int]
    keyed: bool
    numbers: dict[Any, int]
    part_numbers: dict[Hashable, int]
    decode: Decoder
    is_pure: Callable[[Call], bool] | None
    part_of: Callable[[Call], Hashable] | None
    ends: Callable[[Call], bool] | None
    over: Callable[[Call], bool] | None
    resets: Callable[[Call], bool] | None
    memory: int
    state_bytes: int
    most_states: int
    answer_count: int

    def decode_with(
        self,
        signatures: Sequence[Signature],
        values: Sequence[object],
        decode: Decoder,
        call_class: type[Call],
        unknown: object,
    ) -> None: ...
    def number(self, state: Any) -> int: ...
    def answer(self, state: int, symbol: int) -> list[int]: ...
    def parts_of(self, symbols: NDArray[np.int32]) -> NDArray[np.int32]: ...
    def part_among(
        self, records: NDArray[np.void], symbols: NDArray[np.int32], call: int, until: int = ...
    ) -> tuple[Hashable, NDArray[np.int32]] | None: ...
    def part_with(
        self, symbols: NDArray[np.int32], call: int
    ) -> tuple[Hashable, NDArray[np.int32]] | None: ...
    def follow(
        self,
        records: NDArray[np.void],
        order: list[int],
        state: Any,
        by_thread: bool,
        deadline_ns: int,
    ) -> int: ...
