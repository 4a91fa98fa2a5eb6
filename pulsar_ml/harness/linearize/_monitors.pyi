import numpy as np
from numpy.typing import NDArray

def bottomless(
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    pushed: NDArray[np.int64],
    popped: NDArray[np.int64],
    times: int,
) -> NDArray[np.int64]: ...
def earliest(
    put_from: NDArray[np.int64],
    put_by: NDArray[np.int64],
    taken_from: NDArray[np.int64],
    taken_by: NDArray[np.int64],
    times: int,
) -> int: ...
def nowhere_empty(
    put_from: NDArray[np.int64],
    put_by: NDArray[np.int64],
    taken_from: NDArray[np.int64],
    taken_by: NDArray[np.int64],
    invoked: NDArray[np.int64],
    returned: NDArray[np.int64],
    times: int,
) -> int: ...
