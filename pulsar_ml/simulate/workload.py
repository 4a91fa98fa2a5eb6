"""What is written and read: a workload as a value, and as a small TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any

from pulsar_ml.config.reading import plain_text
from pulsar_ml.errors import ConfigError, UsageError

Range = tuple[float, float]

MOST = 1_000_000_000  # of any number
MOST_PARTS = 1_000_000

_FOLDER = resources.files("pulsar_ml.simulate") / "workloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriptions:
    """Some equal subscriptions of a topic.

    Attributes:
        count: how many.
        kind: "ordered" (exclusive and failover: one consumer reads in order) or "key_shared".
        start: "latest", or "earliest": behind the backlog.
        read_batch: most entries of a read.
        entries_per_second: what a consumer takes; 0: whatever is sent.
        connected_seconds: how long a consumer stays, a range; 0, 0: always.
        disconnected_seconds: how long it stays away then, a range.
        consumers: of a key_shared subscription.
        slow_consumers: how many of them are slow.
        slow_entries_per_second: what a slow one takes.
        receiver_queue: entries that may be under way to a consumer (receiverQueueSize).
        keys: different keys of the messages.
        most_waiting: entries that may wait for slow consumers before no more is read ahead.
    """

    count: int = 1
    kind: str = "ordered"
    start: str = "latest"
    read_batch: int = 100
    entries_per_second: float = 0
    connected_seconds: Range = (0, 0)
    disconnected_seconds: Range = (0, 0)
    consumers: int = 4
    slow_consumers: int = 1
    slow_entries_per_second: float = 20
    receiver_queue: int = 100
    keys: int = 1000
    most_waiting: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Some equal topics: written at ``entries_per_second`` (a Poisson process) with entries of uniform size.

    ``backlog`` entries are stored, and not cached, before the start.
    """

    count: int = 1
    entries_per_second: float = 100
    entry_bytes: Range = (1000, 1000)
    backlog: int = 0
    subscriptions: tuple[Subscriptions, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Topics with their subscriptions, for so many virtual seconds.

    ``settings`` are broker.conf keys over the defaults, ``storage_read_millis`` is what a read from storage
    takes, ``dispatch_millis`` the pause between a write and the reads it wakes. With ``audit_order`` the
    result counts entries that left while an older one stayed.
    """

    name: str
    summary: str
    seconds: float = 20
    seed: int = 1
    storage_read_millis: float = 5
    dispatch_millis: float = 1
    audit_order: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: tuple[Topics, ...]


def built_in() -> dict[str, Workload]:
    """The workloads that come with the package, by name."""
    return {name: load_workload(name) for name in built_in_names()}


def built_in_names() -> list[str]:
    names = (file.name for file in _FOLDER.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_workload(name: str) -> Workload:
    """A built-in workload, or the one in a TOML file. UsageError when there is none, or a wrong one."""
    return parse_workload(workload_text(name), name)


def workload_text(name: str) -> str:
    """The TOML text of a workload, which :func:`parse_workload` takes elsewhere too."""
    if name in built_in_names():
        return (_FOLDER / f"{name}.toml").read_text("utf-8")
    if "\0" in name or not Path(name).is_file():
        raise UsageError(
            f"no workload {name!r:.200}: neither a file nor one of {', '.join(built_in_names())}"
        )
    try:
        return plain_text(name)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def parse_workload(text: str, source: str) -> Workload:
    """A workload from TOML. ``source`` names it in errors; UsageError when something does not fit."""
    try:
        table = tomllib.loads(text)
    except (
        ValueError,
        RecursionError,
        SystemError,
    ) as error:  # nested too deeply, or digits beyond Python's
        raise UsageError(f"{source}: not TOML: {error}") from None
    table.setdefault("name", Path(source).stem)
    table.setdefault("summary", "")
    workload = _made(Workload, table, source)
    _check_workload(workload, source)
    return workload


_PARTS: Mapping[tuple[type, str], type] = {
    (Workload, "topics"): Topics,
    (Topics, "subscriptions"): Subscriptions,
}


def _made(kind: type, table: object, where: str) -> Any:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {table!r} should be a table")
    known = {item.name: item for item in fields(kind)}
    if unknown := sorted(set(table) - set(known)):
        raise UsageError(f"{where}: {unknown[0]!r} is not known; known are {', '.join(known)}")
    required = (
        n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING
    )
    if missing := [name for name in required if name not in table]:
        raise UsageError(f"{where}: {missing[0]!r} is missing")
    values = {name: _value(kind, known[name], table[name], f"{where}: {name}") for name in table}
    return kind(**values)


def _value(kind: type, item: Any, value: object, where: str) -> object:
    part = _PARTS.get((kind, item.name))
    if part is not None:
        if not isinstance(value, list):
            raise UsageError(f"{where}: should be an array of tables")
        return tuple(_made(part, each, f"{where}[{index}]") for index, each in enumerate(value))
    if item.type == "Range":
        return _range(value, where)
    if item.type == "str":
        if not isinstance(value, str):
            raise UsageError(f"{where}: {value!r} should be a text")
        return value
    if item.type.startswith("Mapping"):
        if not isinstance(value, dict):
            raise UsageError(f"{where}: {value!r} should be a table of settings")
        return value
    if item.type == "bool":
        if not isinstance(value, bool):
            raise UsageError(f"{where}: {value!r} should be true or false")
        return value
    whole = item.type == "int"
    known = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not known or not 0 <= value <= MOST:
        kind = "whole number" if whole else "number"
        raise UsageError(
            f"{where}: {value!r:.60} should be a {kind} of 0 or more, at most {MOST:,}"
        )
    return value


def _range(value: object, where: str) -> Range:
    pair = value if isinstance(value, list) else [value, value]
    numbers = len(pair) == 2 and all(
        isinstance(n, int | float) and not isinstance(n, bool) for n in pair
    )
    if not numbers or not 0 <= pair[0] <= pair[1] <= MOST:
        raise UsageError(
            f"{where}: {value!r:.60} should be a number or [least, most], 0 <= least <= most <= {MOST:,}"
        )
    return (pair[0], pair[1])


def _check_workload(workload: Workload, source: str) -> None:
    if workload.seconds <= 0:
        raise UsageError(f"{source}: seconds: {workload.seconds} should be above 0")
    if not workload.topics:
        raise UsageError(f"{source}: topics: there is none")
    parts = sum(
        topics.count * (1 + sum(each.count * (1 + each.consumers) for each in topics.subscriptions))
        for topics in workload.topics
    )
    if parts > MOST_PARTS:
        raise UsageError(
            f"{source}: {parts:,} topics, subscriptions and consumers; there should be {MOST_PARTS:,} at most"
        )
    for topics in workload.topics:
        if topics.entry_bytes[1] > 64 << 20:
            raise UsageError(
                f"{source}: entry_bytes: {topics.entry_bytes[1]} should be 64 MiB at most"
            )
        for each in topics.subscriptions:
            if each.kind not in ("ordered", "key_shared"):
                raise UsageError(f"{source}: kind: {each.kind!r} should be ordered or key_shared")
            if each.start not in ("latest", "earliest"):
                raise UsageError(f"{source}: start: {each.start!r} should be latest or earliest")
            if each.kind == "key_shared" and not each.slow_consumers <= each.consumers > 0:
                raise UsageError(
                    f"{source}: consumers: {each.consumers} with {each.slow_consumers} slow ones; there "
                    "should be at least one, and not more slow ones"
                )
            if not each.read_batch or not each.receiver_queue or not each.keys:
                raise UsageError(f"{source}: read_batch, receiver_queue and keys should be above 0")
            if each.slow_consumers and not each.slow_entries_per_second:
                raise UsageError(
                    f"{source}: slow_entries_per_second: a slow consumer should take something"
                )
