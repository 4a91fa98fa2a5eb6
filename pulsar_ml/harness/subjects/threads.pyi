from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.histories.history import RECORD as RECORD
from pulsar_ml.harness.subjects.program import CALL as CALL
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.result import CoreTime as CoreTime
from pulsar_ml.harness.subjects.result import RunResult as RunResult
from pulsar_ml.harness.subjects.result import ThreadViolation as ThreadViolation
from pulsar_ml.harness.subjects.subject import Instance, Subject

def run_program(
    instance: Instance,
    program: Program,
    *,
    patience_ns: int = 120_000_000_000,
    records: Sequence[NDArray[np.void]] | None = None,
) -> RunResult: ...
def run_programs(
    subject: Subject,
    seed: int,
    *,
    threads: int,
    operations: int,
    inside_ns: int,
    most_ns: int,
    most_runs: int = 1_000_000_000,
    mix: Mapping[str, int] | None = None,
    settings: Mapping[str, tuple[int, int]] | None = None,
    noise: bool = True,
    patience_ns: int = 120_000_000_000,
) -> RunResult: ...
def draw_program(
    subject: Subject,
    seed: int,
    *,
    threads: int,
    operations: int,
    mix: Mapping[str, int] | None = None,
    settings: Mapping[str, tuple[int, int]] | None = None,
    noise: bool = True,
) -> Program: ...
def further_seed(seed: int, number: int) -> int: ...
