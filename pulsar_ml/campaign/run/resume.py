"""Goes on with a run that was ended, by whom or what ever: which of its chunks are there, and what they say.

That is in the ledger, whose size is that of the plan's chunks; trials are counted and not read. Nothing is
changed before everything was looked at, and what does not fit is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.plan.plan import Chunk, Plan
from pulsar_ml.campaign.plan.rounds import Rounds
from pulsar_ml.campaign.store.ledger import Ids, ledger_of
from pulsar_ml.campaign.store.merge import Summary, add_chunks, add_violations
from pulsar_ml.campaign.store.schema import (
    CHUNKS,
    SCHEMA_VERSION,
    TRIALS,
    VERDICTS,
    VERSION_KEY,
    VIOLATIONS,
)
from pulsar_ml.campaign.store.staging import SCHEMAS
from pulsar_ml.campaign.store.store import RUN_VERSION, RunStore, waves_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.input_files import bounded_text

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive

BATCH_ROWS = 4096  # of violations, whose records may be long


class Numbered(Protocol):
    """What knows a run's chunks by their ids: a plan, rounds or a search."""

    @property
    def chunk_count(self) -> int: ...
    def chunk(self, chunk_id: int) -> Chunk: ...


@dataclass(frozen=True, slots=True)
class Past:
    """What there is of a run.

    Attributes:
        facts: its run.json.
        rounds: those of its trials, as far as they are decided; None for a run that has none.
        search: its programs, if it searches them to their end, with all parts that are known.
        done: ids of the chunks whose trials are all there.
        summary: of them.
        waves: the number of the next wave.
    """

    store: RunStore
    facts: dict[str, Any]
    plan: Plan
    done: Set[int]
    summary: Summary
    waves: int
    rounds: Rounds | None = None
    search: Exhaustive | None = None


def past_of(directory: Path) -> Past:
    """The run in ``directory``, which no other process may write from now on.

    Raises ``UsageError`` when there is none, when it is damaged or of a newer version, and when another
    process writes it.
    """
    facts = read_facts(directory)
    store = RunStore.reopen(directory)
    try:
        try:
            plan = Plan.from_json(facts["plan"])
        except UsageError as error:
            raise UsageError(f"{directory / 'run.json'}: {error}") from None
        told = facts.get("rounds")
        rounds = None if told is None else Rounds.read(directory, plan, told)
        search = None
        if (told := facts.get("search")) is not None:
            from pulsar_ml.campaign.plan.exhaustive import Exhaustive  # and with it the engine

            search = Exhaustive.reopened(directory, plan, told)
        done = Ids()
        summary = Summary()
        names = waves_of(directory)
        for name in names:
            add_wave(directory, name, rounds or search or plan, facts, done, summary)
    except BaseException:
        store.close()
        raise
    waves = 1 + int(names[-1][len("wave-") : -len(".parquet")]) if names else 0
    return Past(store, facts, plan, done, summary, waves, rounds, search)


def read_facts(directory: Path) -> dict[str, Any]:
    """The content of run.json. UsageError when it is damaged or of a newer version."""
    path = directory / "run.json"
    if not os.path.lexists(path):
        raise UsageError(f"there is no run in {directory}: it has no run.json")
    try:
        facts = json.loads(bounded_text(path, "the file"))
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}") from None
    if not isinstance(facts, dict) or type(facts.get("version")) is not int or facts["version"] < 1:
        raise UsageError(f"{path} is damaged: it should be an object with a version")
    if facts["version"] > RUN_VERSION:
        raise UsageError(
            f"{path} has version {facts['version']!r:.40}, this program reads up to {RUN_VERSION}; "
            "use a newer pulsar_ml"
        )
    for name, kind in (("run_id", str), ("build_id", str), ("plan", dict), ("runner", dict)):
        if not isinstance(facts.get(name), kind):
            raise UsageError(f"{path} is damaged: its {name} is {facts.get(name)!r:.80}")
    return facts


def add_wave(
    directory: Path, name: str, plan: Numbered, facts: dict[str, Any], done: Ids, summary: Summary
) -> None:
    """Takes up a wave: its chunks in ``done``, its sums in ``summary``.

    UsageError unless each chunk is whole, of this plan, run and build, and there once.
    """
    paths = {table: directory / table / name for table in SCHEMAS}
    for table, path in paths.items():
        if not path.is_file():
            raise UsageError(
                f"the wave {name} in {directory} is damaged or incomplete: its {table} are no plain file"
            )
    try:
        for path in paths.values():
            check_version(path, directory)
        chunks = pq.read_table(paths["chunks"], schema=CHUNKS)
        if sum(
            column.null_count for column in (*chunks.columns, pc.list_flatten(chunks["sketch"]))
        ):
            raise UsageError(f"{paths['chunks']} is damaged: it has empty places")
        check_chunks(chunks, plan, facts, paths["chunks"], done)
        for table, column in (("trials", "trials"), ("violations", "violations")):
            told, found = (
                pc.sum(chunks[column]).as_py() or 0,
                pq.read_metadata(paths[table]).num_rows,
            )
            if table == "violations":
                found += (
                    pc.sum(pq.read_table(paths[table], columns=["unlisted"])["unlisted"]).as_py()
                    or 0
                )
            if told != found:
                which_chunk(paths, plan, facts)
                raise UsageError(
                    f"{paths[table]} is damaged: it has {found} rows, and its chunks {told}"
                )
        for batch in pq.ParquetFile(paths["violations"]).iter_batches(BATCH_ROWS):
            add_violations(summary, pa.Table.from_batches([batch]).cast(VIOLATIONS))
        add_chunks(summary, chunks)
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"the wave {name} in {directory} is damaged or incomplete: {reason}"
        ) from None


def check_version(path: Path, directory: Path) -> None:
    metadata = pq.read_schema(path).metadata or {}
    version = metadata.get(VERSION_KEY, b"0").decode()
    if version != str(SCHEMA_VERSION):
        raise UsageError(
            f"the tables in {directory} have version {version} and this program writes version "
            f"{SCHEMA_VERSION}; go on with the pulsar_ml that began the run, or start another one"
        )


def which_chunk(paths: dict[str, Path], plan: Numbered, facts: dict[str, Any]) -> None:
    """UsageError that names the chunk whose trials are not all there; they are read for that."""
    trials = pq.read_table(paths["trials"], schema=TRIALS)
    check_chunks(ledger_of(trials), plan, facts, paths["trials"], Ids())


def check_chunks(
    chunks: pa.Table, plan: Numbered, facts: dict[str, Any], path: Path, done: Ids
) -> None:
    """Adds the ids of chunks to ``done``. UsageError unless they are whole, of the run, and there once."""
    strangers = pc.or_(
        pc.not_equal(chunks["run_id"], facts["run_id"]),
        pc.not_equal(chunks["build_id"], facts["build_id"]),
    )
    if pc.any(strangers).as_py():
        raise UsageError(f"{path} is damaged: it has trials of another run or build")
    names = ("chunk_id", "suite", "strategy", "seed_lo", "seed_hi", "trials", *VERDICTS)
    for number, suite, strategy, seed_lo, seed_hi, trials, *verdicts in zip(
        *(chunks[name].to_pylist() for name in names), strict=True
    ):
        if not 0 <= number < plan.chunk_count or number in done:
            raise UsageError(
                f"{path} is damaged: chunk {number} is there twice or is none of the plan's"
            )
        chunk = plan.chunk(number)
        seen = (suite, strategy if chunk.strategy else "", seed_lo, seed_hi)
        wanted = (chunk.suite, chunk.strategy, chunk.seed_lo, chunk.seed_hi)
        if seen != wanted or {trials, sum(verdicts)} != {len(chunk)}:
            raise UsageError(f"{path} is damaged: it does not have each seed of {chunk} once")
        done.add(number)


def digest_of(suites: Iterable[Suite]) -> str:
    """Twelve hexadecimal digits that differ between suites that would make other programs of a seed."""
    return hashlib.sha256("\0".join(repr(suite) for suite in suites).encode()).hexdigest()[:12]
