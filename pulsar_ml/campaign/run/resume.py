"""Resumes an interrupted run: finds its finished chunks and their sums.

Both are in the ledger, which has one row a chunk; trials are counted, not read. Every check comes
before the first change, and a run that does not fit is refused in one sentence.
"""

from __future__ import annotations

import hashlib
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
from pulsar_ml.campaign.store.columns import SCHEMA_VERSION
from pulsar_ml.campaign.store.ledger import Ids, ledger_of
from pulsar_ml.campaign.store.merge import Summary, add_chunks, add_violations
from pulsar_ml.campaign.store.schema import (
    CHUNKS,
    TRIALS,
    VERDICTS,
    VERSION_KEY,
    VIOLATIONS,
)
from pulsar_ml.campaign.store.staging import SCHEMAS
from pulsar_ml.campaign.store.store import RUN_VERSION, RunStore, record_path, waves_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import check_keys, read_object

if TYPE_CHECKING:
    from pulsar_ml.campaign.plan.exhaustive import Exhaustive

MOST_ID = 200  # characters of a run's or a build's id
BATCH_ROWS = 4096  # of violations; their records may be long


class Numbered(Protocol):
    """A source of a run's chunks by their ids: a plan, rounds or a search."""

    @property
    def chunk_count(self) -> int: ...
    def chunk(self, chunk_id: int) -> Chunk: ...


@dataclass(frozen=True, slots=True)
class Past:
    """The finished chunks of an interrupted run.

    Attributes:
        facts: the content of run.json.
        rounds: its decided rounds; None for a run without rounds.
        search: its programs with all known parts, if it is an exhaustive search.
        done: ids of the chunks whose trials are all on disk.
        summary: the sums over these chunks.
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
    """Open the run in ``directory`` and lock it against other writers.

    Raises ``UsageError`` when there is no run, when it is damaged or of a newer version, and when
    another process is writing it.
    """
    facts = read_facts(directory)
    store = RunStore.reopen(directory)
    try:
        try:
            plan = Plan.from_json(facts["plan"])
        except UsageError as error:
            raise UsageError(f"{directory / 'run.json'}: {error}") from None
        settings = facts.get("rounds")
        rounds = None if settings is None else Rounds.read(directory, plan, settings)
        search = None
        if (settings := facts.get("search")) is not None:
            from pulsar_ml.campaign.plan.exhaustive import Exhaustive  # late: it loads the engine

            search = Exhaustive.reopened(directory, plan, settings)
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
    """Read run.json. UsageError when it is damaged or of a newer version."""
    path = directory / "run.json"
    if not os.path.lexists(path):
        raise UsageError(f"there is no run in {directory}: it has no run.json")
    types_of = {"run_id": str, "build_id": str, "plan": dict, "runner": dict}
    try:
        facts = read_object(
            bounded_text(path, "the file"), str(path), versions=range(1, RUN_VERSION + 1)
        )
        check_keys(facts, types_of, str(path), others=True)
    except BadRecordError as error:
        raise UsageError(str(error)) from None
    for name in ("run_id", "build_id"):
        if len(facts[name]) > MOST_ID or not facts[name].isprintable():
            raise UsageError(f"{path} is damaged: its {name} is {facts[name]!r:.60}")
    return facts


def add_wave(
    directory: Path, name: str, plan: Numbered, facts: dict[str, Any], done: Ids, summary: Summary
) -> None:
    """Add a wave: its chunks to ``done`` and its sums to ``summary``.

    UsageError unless each chunk is complete, occurs once, and is of this plan, run and build.
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
            raise UsageError(f"{paths['chunks']} is damaged: a column has nulls")
        check_chunks(chunks, plan, facts, paths["chunks"], done)
        for table, column in (("trials", "trials"), ("violations", "violations")):
            expected, found = (
                pc.sum(chunks[column]).as_py() or 0,
                pq.read_metadata(paths[table]).num_rows,
            )
            if table == "violations":
                found += (
                    pc.sum(pq.read_table(paths[table], columns=["unlisted"])["unlisted"]).as_py()
                    or 0
                )
            if expected != found:
                which_chunk(paths, plan, facts)
                raise UsageError(
                    f"{paths[table]} is damaged: it has {found} rows, and its chunks have {expected}"
                )
        for batch in pq.ParquetFile(paths["violations"]).iter_batches(BATCH_ROWS):
            add_violations(summary, pa.Table.from_batches([batch]).cast(VIOLATIONS))
        for signature in summary.groups:
            record_path(directory, signature)  # refuses one that is none
        add_chunks(summary, chunks)
    except (OSError, pa.ArrowException, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UsageError(
            f"the wave {name} in {directory} is damaged or incomplete: {reason:.300}"
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
    """Read the trials and raise UsageError that names the chunk with missing trials."""
    trials = pq.read_table(paths["trials"], schema=TRIALS)
    check_chunks(ledger_of(trials), plan, facts, paths["trials"], Ids())


def check_chunks(
    chunks: pa.Table, plan: Numbered, facts: dict[str, Any], path: Path, done: Ids
) -> None:
    """Add chunk ids to ``done``.

    UsageError unless each is complete, of this run, and occurs once.
    """
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
    """Return twelve hexadecimal digits; suites that make other programs of a seed differ."""
    return hashlib.sha256("\0".join(repr(suite) for suite in suites).encode()).hexdigest()[:12]
