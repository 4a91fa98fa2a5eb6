"""A failure of a controlled execution, as a value: everything needed to make it again, and what it was.

It replays exactly on the build that it came from. On another build the replay is an attempt, and says
so: the decisions that still fit are followed and the default policy fills the rest.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.engine import Campaign
from pulsar_ml.harness.program import Program
from pulsar_ml.harness.subject import Subject
from pulsar_ml.harness.symbols import describe_pc, of_engine

VERSION = 1
KIND = "pulsar_ml failure"
SHORT = "pml1."

Decision = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed execution.

    Attributes:
        subject, build_id: what was run.
        program: the operations, as JSON of :class:`Program`.
        mode, reuse, faults, step_limit: under which rules; ``reuse`` is what the execution used.
        strategy, seed, execution: how it was found; 0, 0 after shrinking.
        decisions: the choices that were not the default: (point, thread, kind, value).
        kind: one of the engine's ENDS; ``rule`` the broken invariant's id, or "".
        message: one line in words; ``where`` the accesses involved, as function and file:line.
        trace_hash: of all steps in order; an exact replay has the same.
        module: importable name or path of the checked module with the subject; "": the product's.
        mutant: the mutant selected in that module, None for the unchanged code.
    """

    subject: str
    build_id: str
    program: str
    mode: str
    reuse: str
    faults: tuple[str, ...]
    step_limit: int
    strategy: str
    seed: int
    execution: int
    decisions: tuple[Decision, ...]
    kind: str
    rule: str
    message: str
    where: tuple[str, ...]
    trace_hash: int
    module: str = ""
    mutant: str | None = None

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes two failures the same: kind, rule, and the places of the two accesses."""
        return (self.kind, self.rule, *sorted(self.where[:2] if self.kind == "data race" else self.where[:1]))

    def to_json(self) -> str:
        return json.dumps({"kind_of_record": KIND, "version": VERSION, **asdict(self)}, sort_keys=True)

    def short(self) -> str:
        """One printable word that holds everything; :meth:`from_text` reads it."""
        packed = zlib.compress(self.to_json().encode(), 9)
        return SHORT + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @staticmethod
    def from_text(text: str) -> Failure:
        """From JSON or from the short form; BadRecordError says what is wrong with it."""
        text = text.strip()
        if text.startswith(SHORT):
            body = text[len(SHORT) :]
            try:
                text = zlib.decompress(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).decode()
            except (binascii.Error, zlib.error, ValueError) as error:
                raise BadRecordError(f"the failure is damaged or truncated: {error}") from None
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRecordError(f"the failure is not JSON, so it is damaged or truncated: {error}") from None
        if not isinstance(content, dict) or content.pop("kind_of_record", None) != KIND:
            raise BadRecordError(f"this JSON is not a failure: its kind_of_record should be {KIND!r}")
        version = content.pop("version", None)
        if version != VERSION:
            raise BadRecordError(f"the failure has version {version!r}, this harness reads {VERSION}")
        try:
            content["decisions"] = tuple(
                (int(a), int(b), int(c), int(d)) for a, b, c, d in content["decisions"]
            )
            content["faults"] = tuple(str(fault) for fault in content["faults"])
            content["where"] = tuple(str(place) for place in content["where"])
            return Failure(**content)
        except (KeyError, TypeError, ValueError) as error:
            raise BadRecordError(f"the failure is damaged: {type(error).__name__}: {error}") from None


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a replay did. ``exact``: the same steps and the same failure."""

    exact: bool
    same_build: bool
    failure: Failure | None
    trace: list[dict[str, Any]]

    def verdict(self) -> str:
        if self.exact:
            return "the failure was made again, step by step"
        build = "" if self.same_build else "this is not the build that failed; "
        if self.failure is None:
            return f"{build}the execution ended without a failure"
        return f"{build}another execution failed: {self.failure.kind}: {self.failure.message}"


def capture(campaign: Campaign, number: int, options: Mapping[str, Any]) -> Failure:
    """Make execution ``number`` of a campaign again and return it as a failure.

    The campaign's last execution must have failed. RuntimeError when the second time differs, which
    means that something outside the engine's control decides what the code does.
    """
    first = campaign.hashes(), campaign.end()
    campaign.again(number)
    if (campaign.hashes(), campaign.end()) != first:
        raise RuntimeError(
            f"execution {number} ended as {first[1]!r} at first and as {campaign.end()!r} when made again: "
            "something outside the engine's control decides what the code does"
        )
    return of_recorded(campaign, number, options)


def of_recorded(campaign: Campaign, number: int, options: Mapping[str, Any]) -> Failure:
    """The failure of the execution last made by ``campaign.again``."""
    raw = campaign.failure()
    where = places(raw)
    return Failure(
        subject=campaign.subject.name,
        build_id=str(campaign.subject.build_id),
        program=campaign.program.to_json(),
        mode=campaign.mode,
        reuse=campaign.used()[2],
        faults=tuple(options.get("faults", ())),
        step_limit=int(options.get("step_limit", 20000)),
        strategy=campaign.used()[0],
        seed=campaign.seed,
        execution=number,
        decisions=campaign.decisions_made(),
        kind=str(raw["kind"]),
        rule=str(raw["invariant"]),
        message=sentence(raw),
        where=where,
        trace_hash=campaign.hashes()[0],
    )


def places(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The failing access's stack from the inside out; for a race, its place and the other access's first."""
    frames = [describe_pc(int(pc)) for pc in raw["frames"] if not of_engine(int(pc))]
    if raw["kind"] == "data race":
        frames.insert(1, describe_pc(int(raw["other_pc"])))
    return tuple(frames)


def sentence(raw: Mapping[str, Any]) -> str:
    kind, thread, other = raw["kind"], raw["thread"], raw["other_thread"]
    who = f"thread {thread}" if int(thread) >= 0 else "the main thread"
    if kind == "data race":
        return (
            f"{who}: {raw['op']} of {raw['width']} bytes, unordered with thread {other}: "
            f"{raw['other_op']} of {raw['other_width']} bytes"
        )
    if kind in ("use after free", "double free", "out of bounds", "leak"):
        text = f"{who}: {kind} at byte {raw['offset']} of a block of {raw['block_size']}"
        text += f", allocated at {describe_pc(int(raw['block_pc']))}"
        if raw["free_pc"]:
            text += f", freed by thread {other} at {describe_pc(int(raw['free_pc']))}"
        return text
    return str(raw["message"]) or f"{who}: {kind}"


def replay_campaign(failure: Failure, subject: Subject, **changes: Any) -> Campaign:
    options: dict[str, Any] = {
        "mode": failure.mode,
        "reuse": failure.reuse,
        "faults": failure.faults,
        "step_limit": failure.step_limit,
        "decisions": failure.decisions,
    }
    options.update(changes)
    return Campaign(subject, Program.from_json(failure.program), strategy="replay", **options)


def replay(failure: Failure, subject: Subject) -> Replayed:
    """Make a failure again, and keep its trace."""
    campaign = replay_campaign(failure, subject)
    campaign.again(0)
    again = None
    if campaign.failed():
        options = {"faults": failure.faults, "step_limit": failure.step_limit}
        again = replace(
            of_recorded(campaign, 0, options),
            strategy=failure.strategy,
            seed=failure.seed,
            execution=failure.execution,
            module=failure.module,
            mutant=failure.mutant,
        )
    exact = again is not None and again.kind == failure.kind and again.trace_hash == failure.trace_hash
    return Replayed(exact, failure.build_id == str(subject.build_id), again, campaign.trace())
