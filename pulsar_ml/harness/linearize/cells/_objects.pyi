from collections.abc import Sequence
from typing import Self

from typing_extensions import disjoint_base

from pulsar_ml.harness.linearize.cells._parts import Parts

KINDS: tuple[str, ...]
ACTIONS: tuple[str, ...]
RESULTS: tuple[str, ...]

@disjoint_base
class Objects(Parts):
    def __new__(
        cls,
        kind: int,
        actions: Sequence[int],
        results: Sequence[int],
        values: Sequence[int] | None,
        truths: Sequence[int] | None,
        falses: Sequence[int] | None,
        *,
        none: int = -1,
        ordered: Sequence[int] | None = None,
        initial: int = 0,
        keyed: bool = False,
        memory: int = ...,
    ) -> Self: ...
