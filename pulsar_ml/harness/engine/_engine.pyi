from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, disjoint_base

from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

MODES: tuple[str, ...]
STRATEGIES: Mapping[str, str]
SAMPLERS: tuple[str, ...]
SEARCHES: tuple[str, ...]
OFFERED: tuple[str, ...]
ENDS: tuple[str, ...]
OPS: tuple[str, ...]
CHOICES: tuple[str, ...]
ORDERS: tuple[str, ...]
REDUCING: tuple[str, ...]
FAULTS: Mapping[str, int]
REUSE: Mapping[str, int]
STORES: int
LEAST_STORES: int
MOST_STORES: int
BUFFER: int
SPINS: int
TURNS: int
STEP_LIMIT: int

def strategy_rows() -> list[tuple[str, str, int]]: ...
def steps_in(pid: int) -> int: ...
def places_in(pid: int, sp: int) -> list[tuple[int, int]]: ...
def beat_into(buffer: Buffer | None) -> None: ...
def locate(pc: int) -> tuple[str, int] | None: ...
def symbol_at(pc: int) -> str: ...
def match_places_by(
    is_place: Callable[[int, str], bool], library_race: Callable[[int, int], str]
) -> None: ...

CALL: np.dtype[np.void]
RECORD: np.dtype[np.void]

def meetings(explorer: Explorer) -> NDArray[np.uint64]: ...
def pairs_apart(explorer: Explorer) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
def part_words(explorer: Explorer) -> NDArray[np.uint64]: ...
def executions_left(explorer: Explorer) -> tuple[float, float]: ...
def keep_blocks(begins: bool, cxx: bool) -> None: ...

@disjoint_base
class Explorer:
    subject: Subject
    program: Program
    mode: str
    strategy: str
    seed: int
    bound: int
    depth: int
    spins: int
    turns: int
    stores: int
    symmetry: bool
    most_preemptions: int | None
    suppress: tuple[str, ...]
    faults: tuple[str, ...]
    reasons: tuple[str, ...]

    def __new__(
        cls,
        subject: Subject,
        program: Program,
        *,
        mode: str = "c11",
        strategy: str = "portfolio",
        seed: int = 0,
        faults: Iterable[str] = (),
        reuse: str = "quarantine",
        depth: int = 0,
        bound: int = 2,
        spins: int = 2,
        turns: int = 16,
        stores: int = 8,
        lock_free: bool = False,
        step_limit: int = 20000,
        races: bool = True,
        leaks: bool = True,
        judged: bool = False,
        decisions: Iterable[tuple[int, int, int, int]] = (),
        apart: Sequence[tuple[int, ...]] = (),
        changes: Iterable[tuple[int, str, str, str]] = (),
        path: Sequence[int] = (),
        floor: int = 0,
        suppress: Iterable[str] = (),
        begun: Sequence[int] = (),
        unreduced: int = 0,
        symmetry: bool = False,
        preemptions: int | None = None,
    ) -> Self: ...
    def run(self, first: int, count: int) -> int: ...
    def again(self, number: int) -> None: ...
    def stop_at(self, event: int) -> None: ...
    def reverse(self, number: int) -> str: ...
    def skip(self) -> bool: ...
    def path(self) -> tuple[tuple[int, ...], tuple[int, ...], int]: ...
    def unjudged(self) -> bool: ...
    def accept(self) -> None: ...
    def ask(
        self,
        checker: object,
        records: NDArray[np.void],
        of: NDArray[np.intp],
        counts: NDArray[np.int64],
        *,
        foresees: bool = False,
    ) -> None: ...
    def statistics(self) -> dict[str, int]: ...
    def end(self) -> str: ...
    def failed(self) -> bool: ...
    def hashes(self) -> tuple[int, int]: ...
    def classes(self) -> NDArray[np.uint64]: ...
    def steps(self) -> int: ...
    def used(self) -> tuple[str, int, str]: ...
    def failure(self) -> dict[str, object]: ...
    def trace(self) -> list[dict[str, object]]: ...
    def event(self, index: int) -> dict[str, object]: ...
    def decisions_made(self) -> tuple[tuple[int, int, int, int], ...]: ...
    def preemptions(self) -> int: ...
    def answers(self) -> NDArray[np.int64]: ...
    def calls(self, thread: int) -> list[tuple[int, int, int, tuple[int, ...]]]: ...
