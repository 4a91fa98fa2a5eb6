"""A campaign in rounds: the findings of earlier rounds decide where later trials go.

An arm is a suite, under the engine a suite with one strategy. The first round gives each arm an
equal share; before each later round :mod:`allocation` divides its trials by the rows on disk of
earlier rounds. A round is written to the run before it starts, and a resumed run keeps it:

    rounds/round-00000.json

A guided campaign has a corpus in each round after the first, see :mod:`corpus`.

Each seed of a suite is used once, whatever the strategy: arms take seeds in turn, and suite and
seed identify a trial, as they do without rounds.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pulsar_ml.campaign.plan.allocation import Gain, divide
from pulsar_ml.campaign.plan.corpus import Corpus, corpus_of
from pulsar_ml.campaign.plan.plan import SEED_LIMIT, Chunk, Plan
from pulsar_ml.campaign.trial.trial import CONTROLLED, MIXTURE
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import check_keys, mismatch, read_object

if TYPE_CHECKING:
    from pulsar_ml.campaign.store.store import RunStore

ROUND_VERSION = 1
GUIDED_VERSION = 2  # of a round with a corpus
MOST_ROUNDS = 10_000
MOST_CHUNKS = 10_000_000
MOST_SIGNATURES = 100_000  # that are counted separately
FLOOR = 0.2  # least share of an arm, as a fraction of an equal share
SPENT = ["chunk_id", "suite", "strategy", "executions", "classes"]
CHARGED = ["chunk_id", "suite", "strategy", "trials", "executions", "classes"]
FOUND = ["chunk_id", "suite", "strategy", "signature"]


@dataclass(frozen=True, slots=True, order=True)
class Arm:
    """A receiver of trials: a suite with a strategy of the engine, or "" for real threads."""

    suite: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.suite} {self.strategy}".rstrip()


@dataclass(frozen=True, slots=True)
class Share:
    """The share of an arm in a round: the seeds ``seed_lo`` to ``seed_hi - 1``."""

    arm: Arm
    seed_lo: int
    seed_hi: int

    def __len__(self) -> int:
        return self.seed_hi - self.seed_lo


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    ``first_chunk`` is its first chunk id; chunks have at most ``chunk_seeds`` seeds. ``corpus`` has
    seeds of suites, from whose programs guided trials make theirs.
    """

    first_chunk: int
    chunk_seeds: int
    parts: tuple[Share, ...]
    corpus: Corpus = field(default_factory=dict)

    def chunks(self) -> list[Chunk]:
        """Return its chunks; neighbours belong to different arms where possible."""
        found: list[Chunk] = []
        for piece in range(-(-max(map(len, self.parts)) // self.chunk_seeds)):
            for part in self.parts:
                low = part.seed_lo + piece * self.chunk_seeds
                if low < part.seed_hi:
                    high = min(low + self.chunk_seeds, part.seed_hi)
                    number = self.first_chunk + len(found)
                    suite, strategy = part.arm.suite, part.arm.strategy
                    corpus = self.corpus.get(suite, ()) if strategy == MIXTURE else ()
                    found.append(Chunk(number, suite, low, high, strategy, corpus=corpus))
        return found

    def to_data(self) -> dict[str, object]:
        """Return plain data for ``json``."""
        arms = [
            {**asdict(part.arm), "seed_lo": part.seed_lo, "seed_hi": part.seed_hi}
            for part in self.parts
        ]
        corpus = {suite: list(seeds) for suite, seeds in self.corpus.items()}
        return {
            "version": GUIDED_VERSION if corpus else ROUND_VERSION,
            "first_chunk": self.first_chunk,
            "chunk_seeds": self.chunk_seeds,
            "arms": arms,
            **({"corpus": corpus} if corpus else {}),
        }

    @staticmethod
    def from_text(text: str, what: str = "the round") -> Round:
        """Return the round that ``to_data`` described, as JSON.

        BadRecordError for a damaged one.
        """
        types_of = {
            "first_chunk": int,
            "chunk_seeds": int,
            "arms": tuple[ArmSeeds, ...],
            "corpus": Mapping[str, tuple[int, ...]],
        }
        known = read_object(text, what, versions=(ROUND_VERSION, GUIDED_VERSION))
        content = check_keys(known, types_of, what, optional={"corpus"})
        first, size, arms = (content[name] for name in ("first_chunk", "chunk_seeds", "arms"))
        corpus = content.get("corpus", {})
        if not 0 <= first <= SEED_LIMIT:
            raise mismatch(what, "first_chunk", first, f"0 to {SEED_LIMIT}")
        if not 1 <= size <= SEED_LIMIT:
            raise mismatch(what, "chunk_seeds", size, f"1 to {SEED_LIMIT}")
        if not arms:
            raise mismatch(what, "arms", [], "a list with an arm or more")
        for arm in arms:
            if not 0 <= arm.seed_lo < arm.seed_hi <= SEED_LIMIT:
                should_be = f"below its seed_hi, {arm.seed_hi}, and both 0 to {SEED_LIMIT}"
                raise mismatch(what, f"seed_lo of {arm.suite:.40}", arm.seed_lo, should_be)
        for suite, seeds in corpus.items():
            if not seeds or not all(0 <= seed < SEED_LIMIT for seed in seeds):
                should_be = f"seeds from 0 to {SEED_LIMIT - 1}, one or more"
                raise mismatch(what, f"corpus of {suite:.40}", list(seeds), should_be)
        parts = (Share(Arm(arm.suite, arm.strategy), arm.seed_lo, arm.seed_hi) for arm in arms)
        return Round(first, size, tuple(parts), corpus)


@dataclass(frozen=True, slots=True)
class ArmSeeds:
    """An arm with its seeds, as the file of a round has them."""

    suite: str
    strategy: str
    seed_lo: int
    seed_hi: int


class Rounds:
    """The source of a campaign's chunks, round by round.

    ``on_round`` gets each round at its start.
    """

    def __init__(
        self,
        plan: Plan,
        strategies: Sequence[str],
        rounds: int,
        floor: float,
        decided: Sequence[Round] = (),
        *,
        guided: bool = False,
    ) -> None:
        """Raise UsageError when an arm would have no trial in some round, or a strategy stands
        twice.

        Arguments:
            plan: seeds times suites are the trials of all rounds together; its pieces bound the
                length of a chunk.
            strategies: strategies of the engine; empty for real threads.
            floor: least share of each arm as a fraction, 0 to 1, of an equal share.
            guided: True gives each round after the first a corpus.
        """
        if not 1 <= rounds <= MOST_ROUNDS:
            raise UsageError(f"a campaign has 1 to {MOST_ROUNDS:,} rounds, not {rounds}")
        if not 0 <= floor <= 1:
            raise UsageError(f"the floor is a part from 0 to 1, not {floor}")
        if len(set(strategies)) != len(strategies):
            raise UsageError(f"rounds name each strategy once, not {', '.join(strategies):.200}")
        if plan.first_seed + plan.trials > SEED_LIMIT:
            raise UsageError(
                "seeds must lie in 0 to 2**63 - 1; if one suite got all trials they would not"
            )
        self.plan = plan
        self.strategies = tuple(strategies)
        self.rounds = rounds
        self.floor = floor
        self.guided = guided
        names = self.strategies or ("",)
        self.arms = tuple(Arm(suite, strategy) for suite in plan.suites for strategy in names)
        self.decided: list[Round] = []
        self.on_round: Callable[[int, Round], object] = lambda number, decided: None
        self._chunks: list[Chunk] = []
        divide(
            plan.trials // rounds, [[]] * len(self.arms), Fraction(0)
        )  # checks that the shortest round has enough trials
        for each in decided:
            self._add(each)

    @property
    def trials(self) -> int:
        return self.plan.trials

    @property
    def chunk_trials(self) -> float:
        return self.plan.chunk_trials

    @property
    def chunk_seeds(self) -> int:
        """The largest number of seeds in a chunk."""
        return -(-self.plan.seeds // self.plan.pieces)

    @property
    def chunk_count(self) -> int:
        """The number of chunks of the decided rounds."""
        return len(self._chunks)

    def chunk(self, chunk_id: int) -> Chunk:
        """Return the chunk with this id; its round must be decided."""
        if not 0 <= chunk_id < self.chunk_count:
            raise UsageError(
                f"chunk ids of these rounds are 0 to {self.chunk_count - 1}, not {chunk_id}"
            )
        return self._chunks[chunk_id]

    def stages(self, store: RunStore) -> Iterator[Iterator[Chunk]]:
        """Yield the chunks of each round; a round is decided and written when it is requested."""
        for number in range(self.rounds):
            if number == len(self.decided):
                decided = self.decide(self.gains(store.directory) if number else [])
                if self.guided and number:
                    decided = replace(decided, corpus=self.corpus(store.directory))
                store.write_round(number, decided.to_data())
                self._add(decided)
            self.on_round(number, self.decided[number])
            yield iter(self.decided[number].chunks())

    def decide(self, gains: Sequence[Mapping[Arm, Gain]]) -> Round:
        """Decide the next round from the gains of the earlier rounds."""
        histories = [[gain.get(arm, Gain()) for gain in gains] for arm in self.arms]
        shares = divide(self.budget(len(self.decided)), histories, Fraction(str(self.floor)))
        free = self.free_seeds()
        parts = []
        for arm, share in zip(self.arms, shares, strict=True):
            parts.append(Share(arm, free[arm.suite], free[arm.suite] + share))
            free[arm.suite] += share
        return Round(self.chunk_count, self.chunk_seeds, tuple(parts))

    def corpus(self, directory: Path) -> Corpus:
        """Choose the corpus of the next round from the rows on disk."""
        from pulsar_ml.campaign.store.store import waves_of

        return corpus_of(directory, waves_of(directory), len(self.decided[0].chunks()))

    def budget(self, number: int) -> int:
        """Return the number of trials of a round; rounds differ by at most one."""
        return (number + 1) * self.trials // self.rounds - number * self.trials // self.rounds

    def free_seeds(self) -> dict[str, int]:
        """Return each suite's first seed that no round has used."""
        free = dict.fromkeys(self.plan.suites, self.plan.first_seed)
        for each in self.decided:
            for part in each.parts:
                free[part.arm.suite] = part.seed_hi
        return free

    def _add(self, decided: Round) -> None:
        """Add a decided round. UsageError unless it follows the earlier rounds."""
        number = len(self.decided)
        free = self.free_seeds()
        for part in decided.parts:
            if free.get(part.arm.suite) != part.seed_lo:
                raise UsageError(
                    f"round {number} is damaged: seeds of {part.arm} are left out or there twice"
                )
            free[part.arm.suite] = part.seed_hi
        if (
            number >= self.rounds
            or tuple(part.arm for part in decided.parts) != self.arms
            or sum(map(len, decided.parts)) != self.budget(number)
            or (decided.first_chunk, decided.chunk_seeds) != (self.chunk_count, self.chunk_seeds)
            or not set(decided.corpus) <= (set(self.plan.suites) if self.guided else set())
        ):
            raise UsageError(f"round {number} is damaged: it does not follow from the run's plan")
        if self.chunk_count + self.budget(number) / self.chunk_seeds > MOST_CHUNKS:
            raise UsageError(f"rounds have at most {MOST_CHUNKS:,} chunks; use larger ones")
        self.decided.append(decided)
        self._chunks += decided.chunks()

    def difference(self, other: Rounds | None) -> str:
        """Describe the first setting in which other rounds differ; "" when all are equal."""
        if other is None:
            return "it has no rounds"
        for name in ("strategies", "rounds", "floor", "guided"):
            if getattr(self, name) != getattr(other, name):
                return f"its {name} is {getattr(other, name)!r} and not {getattr(self, name)!r}"
        return ""

    def gains(self, directory: Path) -> list[dict[Arm, Gain]]:
        """Return each arm's gain in each decided round, from the rows on disk."""
        from pulsar_ml.campaign.store.store import waves_of

        counter = GainCounter([each.first_chunk for each in self.decided])
        for name in waves_of(directory):
            counter.charged(pq.read_table(directory / "chunks" / name, columns=CHARGED))
            counter.found(pq.read_table(directory / "violations" / name, columns=FOUND))
        return counter.gains()

    def to_data(self) -> dict[str, object]:
        """Return the settings as plain data for ``json``."""
        facts = {"rounds": self.rounds, "floor": self.floor, "strategies": list(self.strategies)}
        return {**facts, "guided": True} if self.guided else facts

    @staticmethod
    def read(directory: Path, plan: Plan, data: object) -> Rounds:
        """The rounds of a run with these settings, as far as they are decided.

        UsageError for damage.
        """
        what = f"the rounds in {directory / 'run.json'}"
        types_of = {"rounds": int, "floor": float, "strategies": list[str], "guided": bool}
        try:
            data = check_keys(data, types_of, what, optional={"guided"})
            if bool(data["strategies"]) != (plan.options.engine == CONTROLLED):
                should_be = "the engine's, and none for real threads"
                raise mismatch(what, "strategies", data["strategies"], should_be)
            decided = read_rounds(directory)
            guided = data.get("guided", False)
            settings = data["strategies"], data["rounds"], data["floor"]
            return Rounds(plan, *settings, decided, guided=guided)
        except (BadRecordError, UsageError) as error:
            raise UsageError(f"{directory}: {error}") from None


class GainCounter:
    """Adds up the gain of each arm in each round in one pass over a run's rows."""

    def __init__(self, first_chunks: Sequence[int]) -> None:
        self._firsts = first_chunks
        self._sums: dict[tuple[int, Arm], list[int]] = {}
        self._seen: dict[str, dict[tuple[int, Arm], int]] = {}  # by signature: violations

    def spent(self, trials: pa.Table) -> None:
        """Add rows of trials; reads the columns ``SPENT``."""
        sums = trials.group_by(["chunk_id", "suite", "strategy"]).aggregate(
            [("chunk_id", "count"), ("executions", "sum"), ("classes", "sum")]
        )
        for line in sums.to_pylist():
            total = self._sums.setdefault(self._place(line), [0, 0, 0])
            for at, name in enumerate(("chunk_id_count", "executions_sum", "classes_sum")):
                total[at] += line[name]

    def charged(self, chunks: pa.Table) -> None:
        """Add rows of the ledger; reads the columns ``CHARGED``."""
        for line in chunks.to_pylist():
            total = self._sums.setdefault(self._place(line), [0, 0, 0])
            for at, name in enumerate(("trials", "executions", "classes")):
                total[at] += line[name]

    def found(self, violations: pa.Table) -> None:
        """Add rows of violations; reads the columns ``FOUND``."""
        counts = violations.group_by(FOUND).aggregate([([], "count_all")])
        for line in counts.to_pylist():
            if line["signature"] not in self._seen and len(self._seen) >= MOST_SIGNATURES:
                continue
            seen = self._seen.setdefault(line["signature"], {})
            place = self._place(line)
            seen[place] = seen.get(place, 0) + line["count_all"]

    def gains(self) -> list[dict[Arm, Gain]]:
        """Return the gains by round; BadRecordError for rows without a round.

        A signature counts as new for every arm that found it in the first round that found it.
        """
        if self._sums and not self._firsts:
            raise BadRecordError("the run's folder rounds is damaged: the first round is missing")
        violations: dict[tuple[int, Arm], int] = {}
        fresh: dict[tuple[int, Arm], int] = {}
        for seen in self._seen.values():
            first = min(number for number, _ in seen)
            for place, count in seen.items():
                violations[place] = violations.get(place, 0) + count
                fresh[place] = fresh.get(place, 0) + (place[0] == first)
        found: list[dict[Arm, Gain]] = [{} for _ in self._firsts]
        for place, sums in sorted(self._sums.items()):
            number, arm = place
            trials, executions, classes = sums
            found[number][arm] = Gain(
                trials, executions, classes, violations.get(place, 0), fresh.get(place, 0)
            )
        return found

    def _place(self, line: Mapping[str, Any]) -> tuple[int, Arm]:
        number = max(0, bisect_right(self._firsts, line["chunk_id"]) - 1)
        return number, Arm(line["suite"], line["strategy"])


def round_name(number: int) -> str:
    """Return the name of a round's file."""
    return f"round-{number:05}.json"


def read_rounds(directory: Path) -> list[Round]:
    """Read the decided rounds of a run, in order; BadRecordError for a damaged or missing one."""
    paths = sorted((directory / "rounds").glob("round-*.json"))
    if [path.name for path in paths] != [round_name(number) for number in range(len(paths))]:
        raise BadRecordError(f"rounds is damaged: it lacks a round before {paths[-1].name:.40}")
    return [read_round(path) for path in paths]


def read_round(path: Path) -> Round:
    return Round.from_text(bounded_text(path, "the round"), f"rounds/{path.name}")
