"""Goes on with a run that was ended, by whom or what ever: which of its chunks are there, and what they say.

Nothing is changed before everything was looked at, and what does not fit is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pulsar_ml.campaign.merge import Summary, add
from pulsar_ml.campaign.plan import Plan
from pulsar_ml.campaign.schema import SCHEMA_VERSION, VERSION_KEY
from pulsar_ml.campaign.store import RUN_VERSION, RunStore, read_wave, waves_of
from pulsar_ml.campaign.suite import Suite
from pulsar_ml.errors import UsageError


@dataclass(frozen=True, slots=True)
class Past:
    """What there is of a run.

    Attributes:
        facts: its run.json.
        done: ids of the chunks whose trials are all there.
        summary: of them.
        waves: the number of the next wave.
    """

    store: RunStore
    facts: dict[str, Any]
    plan: Plan
    done: frozenset[int]
    summary: Summary
    waves: int


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
        done: set[int] = set()
        summary = Summary()
        names = waves_of(directory)
        for name in names:
            trials, violations = read_whole_wave(directory, name)
            done |= chunks_of(trials, plan, facts, directory / "trials" / name, done)
            add(summary, trials, violations)
    except BaseException:
        store.close()
        raise
    waves = 1 + int(names[-1][len("wave-") : -len(".parquet")]) if names else 0
    return Past(store, facts, plan, frozenset(done), summary, waves)


def read_facts(directory: Path) -> dict[str, Any]:
    """The content of run.json. UsageError when it is damaged or of a newer version."""
    path = directory / "run.json"
    try:
        facts = json.loads(path.read_text())
    except FileNotFoundError:
        raise UsageError(f"there is no run in {directory}: it has no run.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} is damaged: {error}") from None
    if not isinstance(facts, dict) or type(facts.get("version")) is not int:
        raise UsageError(f"{path} is damaged: it should be an object with a version")
    if facts["version"] > RUN_VERSION:
        raise UsageError(
            f"{path} has version {facts['version']}, this program reads up to {RUN_VERSION}; "
            "use a newer pulsar_ml"
        )
    for name, kind in (("run_id", str), ("build_id", str), ("plan", dict), ("runner", dict)):
        if not isinstance(facts.get(name), kind):
            raise UsageError(f"{path} is damaged: its {name} is {facts.get(name)!r}")
    return facts


def read_whole_wave(directory: Path, name: str) -> tuple[pa.Table, pa.Table]:
    try:
        metadata = pq.read_schema(directory / "trials" / name).metadata or {}
        version = metadata.get(VERSION_KEY, b"0").decode()
        if version != str(SCHEMA_VERSION):
            raise UsageError(
                f"the tables in {directory} have version {version} and this program writes version "
                f"{SCHEMA_VERSION}; go on with the pulsar_ml that began the run, or start another one"
            )
        return read_wave(directory, name)
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise UsageError(f"the wave {name} in {directory} is damaged or incomplete: {reason}") from None


def chunks_of(trials: pa.Table, plan: Plan, facts: dict[str, Any], path: Path, known: set[int]) -> set[int]:
    """The chunks in a wave. UsageError unless each is whole, of this plan, run and build, and there once."""
    strangers = pc.or_(
        pc.not_equal(trials["run_id"], facts["run_id"]), pc.not_equal(trials["build_id"], facts["build_id"])
    )
    if pc.any(strangers).as_py():
        raise UsageError(f"{path} is damaged: it has trials of another run or build")
    found = trials.group_by(["chunk_id", "suite"]).aggregate(
        [("seed", "count_distinct"), ("seed", "count"), ("seed", "min"), ("seed", "max")]
    )
    chunks = set()
    for line in found.to_pylist():
        number = line["chunk_id"]
        if not 0 <= number < plan.chunk_count or number in known or number in chunks:
            raise UsageError(f"{path} is damaged: chunk {number} is there twice or is none of the plan's")
        chunk = plan.chunk(number)
        seen = (line["suite"], line["seed_min"], line["seed_max"] + 1)
        counts = {line["seed_count"], line["seed_count_distinct"]}
        if seen != (chunk.suite, chunk.seed_lo, chunk.seed_hi) or counts != {len(chunk)}:
            raise UsageError(f"{path} is damaged: it does not have each seed of {chunk} once")
        chunks.add(number)
    return chunks


def digest_of(suites: Iterable[Suite]) -> str:
    """Twelve hexadecimal digits that differ between suites that would make other programs of a seed."""
    return hashlib.sha256("\0".join(repr(suite) for suite in suites).encode()).hexdigest()[:12]
