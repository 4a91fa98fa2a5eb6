import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

RECORD: np.dtype[np.void]

@disjoint_base
class Parts:
    parts: int
    unanswered: int
    likely: int
    limit: int
    deadline_ns: int

    @property
    def blocked_at(self) -> int: ...
    @property
    def spent(self) -> int: ...
    def search_part(
        self,
        records: NDArray[np.void],
        chosen: NDArray[np.int32],
        *,
        ahead: bool = True,
        most_steps: int = ...,
    ) -> tuple[int, list[int], int, int]: ...
    def takes(self, records: NDArray[np.void]) -> bool: ...
    def symbols(self, records: NDArray[np.void]) -> NDArray[np.int32] | None: ...
    def pieces(self, records: NDArray[np.void]) -> list[NDArray[np.int32]]: ...
    def calls_of_part(self, records: NDArray[np.void]) -> NDArray[np.int32] | None: ...
    def search(
        self,
        records: NDArray[np.void],
        *,
        together: bool = False,
        criterion: int = 0,
        ahead: bool = True,
        most_steps: int = ...,
    ) -> tuple[int, list[int], int, int]: ...
