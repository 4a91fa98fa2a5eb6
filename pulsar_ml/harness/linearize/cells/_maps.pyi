from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

RECORD: np.dtype[np.void]

@disjoint_base
class Maps:
    parts: int
    deadline_ns: int

    def __new__(
        cls, kinds: Sequence[int], values: tuple[object, ...], *, memory: int = ...
    ) -> Self: ...
    @property
    def illegal_key(self) -> object: ...
    def illegal_calls(self, records: NDArray[np.void]) -> NDArray[np.int32] | None: ...
    def search(
        self, records: NDArray[np.void], *, together: bool = False, most_steps: int = ...
    ) -> tuple[int, list[int], int, int]: ...
