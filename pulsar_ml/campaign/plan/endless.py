"""The chunks of a campaign without an end: its plan covers every seed up to 2**63 - 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pulsar_ml.campaign.plan.plan import SEED_LIMIT, Chunk, Plan
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import UsageError


def plan_without_end(
    suites: tuple[str, ...], first_seed: int, size: int, options: TrialOptions
) -> Plan:
    """Plan each suite on all seeds from ``first_seed``, in chunks of ``size`` seeds."""
    if size < 1:
        raise UsageError(f"a chunk has at least 1 seed, not {size}")
    pieces = (SEED_LIMIT - first_seed) // size
    if first_seed < 0 or pieces < 1:
        raise UsageError(f"seeds must lie in 0 to 2**63 - 1; {size} seeds from {first_seed} do not")
    return Plan(suites, first_seed, pieces * size, pieces, options)


@dataclass(frozen=True, slots=True)
class Endless:
    """The source of chunks of a campaign without an end: in order, or as ``batches`` name them.

    ``next_chunk`` follows the last finished chunk; unfinished chunks before it come first. A batch
    also includes failed chunks between the end of the batch before and its own begin.
    """

    plan: Plan
    next_chunk: int
    batches: Callable[[], Iterator[Sequence[int]]] | None = None

    @property
    def trials(self) -> None:
        return None

    @property
    def chunk_trials(self) -> float:
        return self.plan.chunk_trials

    def stages(self, store: RunStore) -> Iterator[Iterator[Chunk]]:
        """Yield batches; each is requested when the store holds all rows of the batch before."""
        if self.next_chunk:
            yield map(self.plan.chunk, range(self.next_chunk))
        if self.batches is None:
            yield map(self.plan.chunk, range(self.next_chunk, self.plan.chunk_count))
        else:
            following = self.next_chunk
            for batch in self.batches():
                ids = [*range(following, min(batch, default=following)), *batch]
                following = max([following, *(chunk_id + 1 for chunk_id in batch)])
                yield map(self.plan.chunk, ids)
