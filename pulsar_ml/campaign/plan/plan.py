"""The plan of a campaign: its suites and seeds, cut into chunks by arithmetic.

A plan is a pure value with a JSON form. Each suite runs every seed of the range once. The range is
cut into the same number of pieces for every suite, and chunk ``piece * len(suites) + suite`` is the
piece of one suite: neighbouring chunks belong to different suites, so that a campaign which ends
early has spent its time on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.versioned_json import check_keys, check_object

PLAN_VERSION = 2  # plans of version 1 are for real threads only
SEED_LIMIT = 1 << 63  # seeds are stored as signed 64-bit numbers


@dataclass(frozen=True, slots=True)
class Chunk:
    """Trials of one suite on the seeds ``seed_lo`` to ``seed_hi - 1``: the unit of distribution.

    ``strategy`` is the engine's strategy for them; "" is the job's own. ``part`` is the part of an
    exhaustive search; "" is the whole search. ``corpus`` are seeds from whose programs guided
    trials make theirs.
    """

    chunk_id: int
    suite: str
    seed_lo: int
    seed_hi: int
    strategy: str = ""
    part: str = ""
    corpus: tuple[int, ...] = ()

    def __len__(self) -> int:
        return self.seed_hi - self.seed_lo

    def __str__(self) -> str:
        return f"chunk {self.chunk_id} ({self.suite}, seeds {self.seed_lo} to {self.seed_hi - 1})"


@dataclass(frozen=True, slots=True)
class Plan:
    """Suites, their seed range (``first_seed``, ``seeds``), pieces per suite, options of trials."""

    suites: tuple[str, ...]
    first_seed: int
    seeds: int
    pieces: int
    options: TrialOptions

    def __post_init__(self) -> None:
        if not self.suites:
            raise UsageError("a plan needs at least one suite")
        if len(set(self.suites)) != len(self.suites):
            raise UsageError(f"a plan names each suite once, not {', '.join(self.suites):.200}")
        if self.seeds < 1:
            raise UsageError(f"a plan needs at least 1 seed, not {self.seeds}")
        if self.first_seed < 0 or self.first_seed + self.seeds > SEED_LIMIT:
            raise UsageError(
                f"seeds must lie in 0 to 2**63 - 1; {self.seeds} seeds from {self.first_seed} do not"
            )
        if not 1 <= self.pieces <= self.seeds:
            raise UsageError(
                f"{self.seeds} seeds can be cut into 1 to {self.seeds} pieces, not {self.pieces}"
            )

    @property
    def chunk_count(self) -> int:
        return self.pieces * len(self.suites)

    @property
    def trials(self) -> int:
        return self.seeds * len(self.suites)

    @property
    def chunk_trials(self) -> float:
        """The mean number of trials in a chunk."""
        return self.seeds / self.pieces

    def chunk(self, chunk_id: int) -> Chunk:
        """Return the chunk with this id; pieces of a range differ by at most one seed."""
        if not 0 <= chunk_id < self.chunk_count:
            raise UsageError(
                f"chunk ids of this plan are 0 to {self.chunk_count - 1}, not {chunk_id}"
            )
        piece, suite = divmod(chunk_id, len(self.suites))
        return Chunk(
            chunk_id,
            self.suites[suite],
            self.first_seed + piece * self.seeds // self.pieces,
            self.first_seed + (piece + 1) * self.seeds // self.pieces,
        )

    def chunks(self) -> Iterator[Chunk]:
        return (self.chunk(chunk_id) for chunk_id in range(self.chunk_count))

    def stages(self, store: object) -> Iterator[Iterator[Chunk]]:
        """Yield one stage with all chunks: none depends on the findings of others."""
        yield self.chunks()

    def difference(self, other: Plan) -> str:
        """Describe the first field in which another plan differs; "" when they are equal."""
        mine, others = ({**asdict(plan), **asdict(plan.options)} for plan in (self, other))
        for name in mine:
            if name != "options" and mine[name] != others[name]:
                return f"its {name} is {others[name]!r} and not {mine[name]!r}"
        return ""

    def to_json(self) -> dict[str, object]:
        """Return plain data for ``json``, from which ``from_json`` makes an equal plan."""
        return {"version": PLAN_VERSION, **asdict(self), "suites": list(self.suites)}

    @staticmethod
    def from_json(data: object) -> Plan:
        """Return the plan that ``to_json`` described; UsageError when it is not one."""
        types_of = {
            "suites": tuple[str, ...],
            "first_seed": int,
            "seeds": int,
            "pieces": int,
            "options": TrialOptions,
        }
        try:
            content = check_object(data, "the plan", versions=range(1, PLAN_VERSION + 1))
            return Plan(**check_keys(content, types_of, "the plan"))
        except BadRecordError as error:
            raise UsageError(str(error)) from None


def pieces_of_size(seeds: int, size: int) -> int:
    """Return how many pieces of at most ``size`` seeds a range of ``seeds`` needs."""
    if size < 1:
        raise UsageError(f"a chunk has at least 1 seed, not {size}")
    return max(1, math.ceil(seeds / size))


def pieces_of_seconds(seeds: int, trial_seconds: float, chunk_seconds: float, spread: int) -> int:
    """Return how many pieces take about ``chunk_seconds`` each; at least ``spread``.

    ``spread`` is the number of chunks that run at once: fewer pieces would leave a slot idle.
    """
    if not chunk_seconds > 0:
        raise UsageError(f"a chunk takes more than 0 seconds, not {chunk_seconds}")
    by_time = math.ceil(seeds * trial_seconds / chunk_seconds)
    return min(seeds, max(1, spread, by_time))
