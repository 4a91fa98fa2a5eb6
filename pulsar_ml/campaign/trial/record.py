"""Replay records: the facts that reproduce a failed program, as one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pulsar_ml.errors import BadRecordError

VERSION = 1
KIND = "pulsar_ml replay record"

INTEGERS = ("seed", "threads", "operations")
STRINGS = ("suite", "build_id", "module", "program")
POSITIONS = ("thread", "call")
OPTIONAL_STRINGS = ("mutant", "invariant", "message")


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
    version: int = VERSION

    def to_json(self) -> str:
        """Return one line of JSON, equal for equal records."""
        return json.dumps(
            {"kind": KIND, **asdict(self), "settings": dict(self.settings)}, sort_keys=True
        )

    @staticmethod
    def from_json(text: str) -> ReplayRecord:
        """Parse ``text``; BadRecordError names in one sentence the field that is wrong."""
        content = decode(text)
        check_version(content)
        for name in INTEGERS:
            require(type(content.get(name)) is int, name, content, "an integer")
        for name in POSITIONS:  # older records do not have them
            require(type(content.get(name, -1)) is int, name, content, "an integer")
        for name in STRINGS:
            require(isinstance(content.get(name), str), name, content, "a text")
        for name in OPTIONAL_STRINGS:
            value = content.get(name, "")
            require(
                value is None or (name in content and isinstance(value, str)),
                name,
                content,
                "a text or null",
            )
        require(type(content.get("noise")) is bool, "noise", content, "true or false")
        settings = content.get("settings")
        require(
            isinstance(settings, dict) and all(type(value) is int for value in settings.values()),
            "settings",
            content,
            "an object of integers",
        )
        require(0 <= content["seed"] < 2**64, "seed", content, "between 0 and 2**64 - 1")
        require(content["threads"] >= 1, "threads", content, "at least 1")
        require(content["operations"] >= 1, "operations", content, "at least 1")
        unknown = set(content) - {field.name for field in fields(ReplayRecord)} - {"kind"}
        if unknown:
            raise BadRecordError(
                f"the replay record has a field {min(unknown)!r:.80} that version {VERSION} does not have"
            )
        return ReplayRecord(**{name: value for name, value in content.items() if name != "kind"})


def decode(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecordError(
            f"the replay record is not JSON, so it is damaged or truncated: {error}"
        ) from None
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise BadRecordError(
            f"this JSON is not a replay record: it should be an object whose kind is {KIND!r}"
        )
    return content


def check_version(content: dict[str, Any]) -> None:
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise BadRecordError(
            f"the replay record has version {version!r:.80}; it should be an integer from 1 to {VERSION}"
        )
    if version > VERSION:
        raise BadRecordError(
            f"the replay record has version {version!s:.80}, this program reads up to {VERSION}; "
            "use a newer pulsar_ml"
        )


def require(condition: bool, name: str, content: dict[str, Any], expected: str) -> None:
    if not condition:
        seen = f"{content[name]!r:.80}" if name in content else "missing"
        raise BadRecordError(f"the replay record's {name} is {seen}; it should be {expected}")
