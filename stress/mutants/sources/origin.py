"""The origin of a result: digests of everything on which it depends, part by part."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Digests of what a result was made from; "" for a part that plays no role.

    Attributes:
        code: the structure, its operations, and the mutant's text.
        programs: a sample of the programs, and the budget that is spent on them.
        model: the suite's model, for a technique that judges by it.
        engine: the engine, for a technique that runs under it.
    """

    code: str
    programs: str
    model: str
    engine: str

    def differing(self, other: Origin) -> tuple[str, ...]:
        """Names of the parts in which two origins differ."""
        mine, others = asdict(self), asdict(other)
        return tuple(name for name in mine if mine[name] != others[name])
