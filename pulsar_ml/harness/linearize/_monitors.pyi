import numpy as np
from numpy.typing import NDArray

def bottomless(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    pushed: NDArray[np.int64],
    popped: NDArray[np.int64],
    times: int,
) -> NDArray[np.int64]: ...
