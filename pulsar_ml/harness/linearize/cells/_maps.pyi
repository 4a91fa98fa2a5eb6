from collections.abc import Sequence
from typing import Self

from typing_extensions import disjoint_base

from pulsar_ml.harness.linearize.cells._parts import Parts

@disjoint_base
class Maps(Parts):
    def __new__(
        cls, kinds: Sequence[int], values: tuple[object, ...], *, memory: int = ...
    ) -> Self: ...
    @property
    def illegal_key(self) -> object: ...
