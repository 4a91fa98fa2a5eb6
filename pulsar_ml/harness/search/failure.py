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
from typing import TYPE_CHECKING, Any

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.engine import SPINS, STEP_LIMIT, Campaign
from pulsar_ml.harness.search.child import ENDED, MEMORY, STUCK
from pulsar_ml.harness.search.race import WORDS, Race, race_of
from pulsar_ml.harness.search.symbols import describe_pc, of_engine
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.input_files import one_line

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.oracle import Judge

VERSION = 1
KIND = "pulsar_ml failure"
SHORT = "pml1."
MOST_BYTES = 16 << 20  # of a failure as text; those of the engine's largest programs are far below
BLOCKED = "blocked call"  # one of the engine's ENDS; it takes seconds each time
WRONG_ANSWERS = "wrong answers"  # the kind of a failure that a judge found

Decision = tuple[int, int, int, int]
MOST_BYTES = 16 << 20  # of a failure as text; those of the engine's largest programs are far below


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed execution.

    Attributes:
        subject, build_id: what was run.
        program: the operations, as JSON of :class:`Program`.
        mode, reuse, faults, step_limit: under which rules; ``reuse`` is what the execution used.
        strategy, seed, execution: how it was found; 0, 0 after shrinking.
        decisions: the choices that were not the default: (point, thread, kind, value).
        kind: one of the engine's ENDS or WRONG_ANSWERS; ``rule`` the broken invariant's id, or "".
        message: one line in words; ``where`` the failing access's stack from the inside out, as function
            and file:line; of a data race the places of the two accesses, the failing one first.
        trace_hash: of all steps in order; an exact replay has the same.
        module: importable name or path of the checked module with the subject; "": the product's.
        mutant: the mutant selected in that module, None for the unchanged code.
        races: whether data races were looked for.
        race: of a data race, both accesses and what is known of their order.
        bound, spins: of the exhaustive strategies; ``part`` what one of them searched, "" for
            everything.
        lock_free: whether a thread was held back to see that the others can end.
        suppress: the known races that were passed over, as places.
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
    races: bool = True
    race: Race | None = None
    bound: int = 2
    spins: int = SPINS
    lock_free: bool = False
    part: str = ""
    suppress: tuple[str, ...] = ()

    @property
    def lost(self) -> bool:
        """Whether its process was lost: it is made again from seed and number, in a child process."""
        return self.kind in (ENDED, STUCK, MEMORY)

    @property
    def signature(self) -> tuple[str, ...]:
        """What makes two failures the same: kind, rule, and the places of the two accesses."""
        return (
            self.kind,
            self.rule,
            *sorted(self.where[:2] if self.kind == "data race" else self.where[:1]),
        )

    def to_json(self) -> str:
        return json.dumps(
            {"kind_of_record": KIND, "version": VERSION, **asdict(self)}, sort_keys=True
        )

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
                text = unpacked(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).decode()
            except (binascii.Error, zlib.error, ValueError) as error:
                raise BadRecordError(
                    f"the failure is damaged or truncated: {one_line(error)}"
                ) from None
        if len(text) > MOST_BYTES:
            raise BadRecordError(f"this is no failure: it is longer than {MOST_BYTES >> 20} MiB")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise BadRecordError(
                f"the failure is not JSON, so it is damaged or truncated: {error}"
            ) from None
        if not isinstance(content, dict) or content.pop("kind_of_record", None) != KIND:
            raise BadRecordError(
                f"this JSON is not a failure: its kind_of_record should be {KIND!r}"
            )
        version = content.pop("version", None)
        if version != VERSION:
            raise BadRecordError(
                f"the failure has version {version!r:.80}, this harness reads {VERSION}"
            )
        try:
            content["decisions"] = tuple(
                (int(a), int(b), int(c), int(d)) for a, b, c, d in content["decisions"]
            )
            content["faults"] = tuple(str(fault) for fault in content["faults"])
            content["where"] = tuple(str(place) for place in content["where"])
            content["suppress"] = tuple(str(place) for place in content.get("suppress", ()))
            if content.get("race") is not None:
                content["race"] = Race.from_data(content["race"])
            check_types(content)
            return Failure(**content)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise BadRecordError(f"the failure is damaged: {one_line(error)}") from None


TEXTS = {
    *("subject", "build_id", "program", "mode", "reuse", "strategy", "part"),
    *("kind", "rule", "message", "module"),
}
NUMBERS = {"step_limit", "seed", "execution", "trace_hash", "bound", "spins"}
FLAGS = {"races", "lock_free"}


def check_types(content: Mapping[str, Any]) -> None:
    """TypeError for the first of a failure's fields that holds something of another kind."""
    for name, value in content.items():
        expected = (
            str if name in TEXTS else int if name in NUMBERS else bool if name in FLAGS else None
        )
        if expected is not None and type(value) is not expected:
            raise TypeError(f"{name} is {str(value)[:60]!r}, not of type {expected.__name__}")
    if not isinstance(content.get("mutant"), str | None):
        raise TypeError(f"mutant is {str(content['mutant'])[:60]!r}, neither a text nor null")


def unpacked(packed: bytes) -> bytes:
    """What zlib packed; ValueError when that is truncated or would grow beyond all measure."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(packed, MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its end is missing")
    return content


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


def capture(
    campaign: Campaign, number: int, options: Mapping[str, Any], refused: str = ""
) -> Failure:
    """Make execution ``number`` of a campaign again and return it as a failure.

    The campaign's last execution must have failed, or been refused by a judge with the words ``refused``.
    RuntimeError when the second time differs, which means that something outside the engine's control
    decides what the code does.
    """
    first = campaign.hashes(), campaign.end()
    campaign.again(number)
    if (campaign.hashes(), campaign.end()) != first:
        raise RuntimeError(
            f"execution {number} ended as {first[1]!r} at first and as {campaign.end()!r} when made again: "
            "something outside the engine's control decides what the code does"
        )
    return of_recorded(campaign, number, options, refused)


def of_recorded(
    campaign: Campaign, number: int, options: Mapping[str, Any], refused: str = ""
) -> Failure:
    """The failure of the execution last made by ``campaign.again``; ``refused``: why a judge refused it."""
    raw = campaign.failure()
    race = race_of(campaign, number, raw) if raw["kind"] == "data race" else None
    return Failure(
        subject=campaign.subject.name,
        build_id=str(campaign.subject.build_id),
        program=campaign.program.to_json(),
        mode=campaign.mode,
        reuse=campaign.used()[2],
        faults=tuple(options.get("faults", ())),
        step_limit=int(options.get("step_limit", STEP_LIMIT)),
        strategy=campaign.used()[0],
        seed=campaign.seed,
        execution=number,
        decisions=campaign.decisions_made(),
        kind=WRONG_ANSWERS if refused else str(raw["kind"]),
        rule="" if refused else str(raw["invariant"]),
        message=refused or sentence(raw) + waiting_places(campaign, raw["waiting"]),
        where=(race.second.place, race.first.place) if race else () if refused else places(raw),
        trace_hash=campaign.hashes()[0],
        races=bool(options.get("races", True)),
        bound=campaign.bound,
        spins=campaign.spins,
        lock_free=bool(options.get("lock_free", False)),
        race=race,
        suppress=campaign.suppress,
    )


def waiting_places(campaign: Campaign, waiting: Mapping[int, int]) -> str:
    """The place of each thread that waits, in brackets; "" when none does.

    ``waiting`` maps threads to the code where they are blocked, 0: a thread runs in a loop and stands where
    it made its last step.
    """
    if not waiting:
        return ""
    last = {event["thread"]: event["pc"] for event in campaign.trace() if event["pc"]}
    pcs = {thread: pc or last.get(thread, 0) for thread, pc in waiting.items()}
    return f" ({', '.join(f'thread {thread} at {describe_pc(pc)}' for thread, pc in pcs.items())})"


def places(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The failing access's stack from the inside out."""
    return tuple(describe_pc(int(pc)) for pc in raw["frames"] if not of_engine(int(pc)))


def sentence(raw: Mapping[str, Any]) -> str:
    kind, thread, other = raw["kind"], raw["thread"], raw["other_thread"]
    who = f"thread {thread}" if int(thread) >= 0 else "the main thread"
    if kind == "data race":
        return (
            f"{who}: {WORDS.get(raw['op'], raw['op'])} of {raw['width']} bytes, "
            f"unordered with thread {other}: {raw['other_op']} of {raw['other_width']} bytes"
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
        "races": failure.races,
        "decisions": failure.decisions,
        "suppress": failure.suppress,
    }
    options.update(changes)
    return Campaign(subject, Program.from_json(failure.program), strategy="replay", **options)


def replay(failure: Failure, subject: Subject, judge: Judge | None = None) -> Replayed:
    """Make a failure again, and keep its trace. UsageError for one that would take this process along.

    ``judge`` is the one that refused the answers, where that was the failure; without it, equal steps mean
    equal answers, and others are not judged.
    """
    if failure.lost:
        raise UsageError(
            f"{failure.kind}: only pulsar_ml.harness.search.sandbox.replay_lost makes this failure again"
        )
    campaign = replay_campaign(failure, subject)
    campaign.again(0)
    again = None
    refused = ""
    if failure.kind == WRONG_ANSWERS and campaign.end() == "complete":
        if judge is not None:
            refused = judge(campaign)
        elif campaign.hashes()[0] == failure.trace_hash:
            refused = failure.message
    if campaign.failed() or refused:
        options = {
            "faults": failure.faults,
            "step_limit": failure.step_limit,
            "races": failure.races,
        }
        again = replace(
            of_recorded(campaign, 0, options, refused),
            strategy=failure.strategy,
            seed=failure.seed,
            execution=failure.execution,
            module=failure.module,
            mutant=failure.mutant,
        )
    exact = (
        again is not None and again.kind == failure.kind and again.trace_hash == failure.trace_hash
    )
    return Replayed(exact, failure.build_id == str(subject.build_id), again, campaign.trace())
