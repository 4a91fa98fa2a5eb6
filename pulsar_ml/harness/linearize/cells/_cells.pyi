from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

RECORD: np.dtype[np.void]

@disjoint_base
class Cells:
    operations: int
    deadline_ns: int

    def __new__(
        cls,
        kinds: Sequence[int],
        failed: Sequence[int | None],
        classes: Sequence[int] | None,
        initial: int,
        *,
        keyed: bool = False,
    ) -> Self: ...
    def search(
        self,
        records: NDArray[np.void],
        *,
        chosen: NDArray[np.int32] | None = None,
        unconstrained: NDArray[np.int32] | None = None,
        most_steps: int = ...,
        memory: int = ...,
    ) -> tuple[int, list[int], int, int]: ...
