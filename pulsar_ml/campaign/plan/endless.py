"""A campaign without an end: the chunks of a plan that has all seeds there are."""

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
    """Each suite on all seeds from ``first_seed`` on, in chunks of ``size``; more than anybody can run."""
    if size < 1:
        raise UsageError(f"a chunk has at least 1 seed, not {size}")
    pieces = (SEED_LIMIT - first_seed) // size
    if first_seed < 0 or pieces < 1:
        raise UsageError(f"seeds must lie in 0 to 2**63 - 1; {size} seeds from {first_seed} do not")
    return Plan(suites, first_seed, pieces * size, pieces, options)


@dataclass(frozen=True, slots=True)
class Endless:
    """Where the chunks of such a campaign come from: one after the other, or as ``batches`` name them.

    ``next_chunk`` is behind all chunks that are done; those before it that are not come first. A batch that
    begins behind the one before it, because chunks of its end had failed when the run was left, has them too.
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
        """The next batch is asked for when all of one is in the store."""
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
