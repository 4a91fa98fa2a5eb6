"""Replay records: the facts that reproduce a failed program, as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from pulsar_ml.versioned_json import build, mismatch, read_object

VERSION = 1
VERSION_WITH_RUNS = 2  # of records that say how many runs
KIND = "pulsar_ml replay record"
MOST_THREADS = 64
MOST_OPERATIONS = 10_000_000  # of each thread
MOST_RUNS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRecord:
    """The facts to run one program again, and the invariant that it broke.

    Suite, seed, threads, operations, noise and settings decide the program. They do not decide the
    schedule: real threads reproduce a failure with some probability.

    Attributes:
        operations: operations per thread.
        settings: the creation settings drawn from the seed.
        build_id: build id of the native module on which the program failed.
        module: importable name or path of the native module.
        mutant: the selected mutant, None for the product.
        invariant, message: the broken invariant and its message; None without a violation.
        thread, call: the thread that saw the violation and the number of its call; -1 if unknown.
        program: digest of the program, from which a replay sees that the suite or the generator
            has changed; empty when unknown.
        runs: runs of the trial, where the failed one is unknown, see :class:`TrialOptions`.
    """

    suite: str
    seed: int
    threads: int
    operations: int
    noise: bool
    settings: Mapping[str, int]
    build_id: str
    module: str
    mutant: str | None = None
    invariant: str | None = None
    message: str | None = None
    program: str = ""
    thread: int = -1
    call: int = -1
    runs: int = 1
    version: int = VERSION

    def to_json(self) -> str:
        """Return one line of JSON, equal for equal records."""
        content = {"kind": KIND, **asdict(self), "settings": dict(self.settings)}
        if self.runs == 1:
            del content["runs"]  # older releases read it
        else:
            content["version"] = VERSION_WITH_RUNS
        return json.dumps(content, sort_keys=True)

    @staticmethod
    def from_json(text: str) -> ReplayRecord:
        """Return the record of ``text``; BadRecordError for a damaged one, or a newer version."""
        what = "the replay record"
        content = read_object(text, what, kind=KIND, versions=(VERSION, VERSION_WITH_RUNS))
        record = build(ReplayRecord, content, what, optional={"thread", "call", "runs", "version"})
        if not 0 <= record.seed < 2**64:
            raise mismatch(what, "seed", record.seed, "between 0 and 2**64 - 1")
        if not 0 <= record.runs <= MOST_RUNS:
            raise mismatch(what, "runs", record.runs, f"between 0 and {MOST_RUNS:,}")
        for name, most in (("threads", MOST_THREADS), ("operations", MOST_OPERATIONS)):
            if not 1 <= content[name] <= most:
                raise mismatch(what, name, content[name], f"between 1 and {most:,}")
        return replace(record, version=VERSION)  # which `runs` decides
