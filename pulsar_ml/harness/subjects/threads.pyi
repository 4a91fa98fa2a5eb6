from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import RECORD as RECORD
from pulsar_ml.harness.subjects.program import CALL as CALL
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.result import CoreTime as CoreTime
from pulsar_ml.harness.subjects.result import RunResult as RunResult
from pulsar_ml.harness.subjects.result import ThreadViolation as ThreadViolation
from pulsar_ml.harness.subjects.subject import Instance

def run_program(
    instance: Instance,
    program: Program,
    *,
    patience_ns: int = 120_000_000_000,
    records: Sequence[NDArray[np.void]] | None = None,
) -> RunResult: ...
def repeat_program(
    instance: Instance,
    program: Program,
    *,
    inside_ns: int,
    most_ns: int,
    most_runs: int = 1_000_000,
    patience_ns: int = 120_000_000_000,
) -> RunResult: ...
