from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Never, Self

from typing_extensions import disjoint_base

class Argument(NamedTuple):
    name: str
    low: int
    high: int

class SubjectOperation(NamedTuple):
    name: str
    code: int
    weight: int
    role: int
    arguments: tuple[Argument, ...]

class Result(NamedTuple):
    status: int
    words: tuple[int, int, int, int]

class InvariantViolation(AssertionError):
    invariant: str
    message: str
    def __init__(self, invariant: str, message: str) -> None: ...

@disjoint_base
class Subject:
    judge: Any
    around: Callable[[], AbstractContextManager[None]] | None
    # Always TypeError: subjects come from native modules.
    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def max_threads(self) -> int: ...
    def session(self) -> AbstractContextManager[None]: ...
    @property
    def address(self) -> int: ...
    @property
    def build_id(self) -> str: ...
    @property
    def owner(self) -> Any: ...
    @property
    def needs_gil(self) -> bool: ...
    @property
    def operations(self) -> tuple[SubjectOperation, ...]: ...
    @property
    def settings(self) -> tuple[Argument, ...]: ...
    def operation(self, name: str) -> SubjectOperation: ...
    def create(
        self, *, threads: int = 1, settings: Mapping[str, int] | None = None
    ) -> Instance: ...

@disjoint_base
class Instance:
    def __new__(
        cls, subject: Subject, threads: int, settings: Mapping[str, int] | None
    ) -> Self: ...
    @property
    def subject(self) -> Subject: ...
    @property
    def threads(self) -> int: ...
    @property
    def address(self) -> int: ...
    def call(self, name: str, *arguments: int, thread: int = 0) -> Result: ...
    def check(self) -> None: ...

def subject_at(
    address: int, build_id: str, owner: object, *, needs_gil: bool = False
) -> Subject: ...
