from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.history import RECORD as RECORD
from pulsar_ml.harness.program import CALL as CALL
from pulsar_ml.harness.program import Program
from pulsar_ml.harness.result import RunResult as RunResult
from pulsar_ml.harness.result import ThreadViolation as ThreadViolation
from pulsar_ml.harness.subject import Instance

def run(
    instance: Instance,
    program: Program,
    *,
    patience_ns: int = 120_000_000_000,
    records: Sequence[NDArray[np.void]] | None = None,
) -> RunResult: ...
