import numpy as np
from numpy.typing import NDArray

def operations(
    text: str, first: int, number: int
) -> tuple[NDArray[np.void], list[object], list[str], list[int]] | None: ...
