"""Workloads: topics, their writers and their subscriptions, as values and as TOML files."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from importlib import resources
from pathlib import Path
from typing import Any, TypeGuard

from pulsar_ml.config.reading import plain_text
from pulsar_ml.errors import ConfigError, UsageError
from pulsar_ml.simulate.latency import Latency, parse_latency

Range = tuple[float, float]

MAX_NUMBER = 1_000_000_000  # the largest number in a workload
MAX_ACTORS = 1_000_000  # topics, subscriptions and consumers together
MAX_ENTRIES = 100_000_000  # written and in backlogs; a million take about a minute and 200 MB
MAX_DELIVERIES = 1_000_000_000  # of entries to subscriptions
MAX_CONNECTIONS = 10_000_000

FIVE_MILLIS = Latency(((0.0, 5.0),))

_FOLDER = resources.files("pulsar_ml.simulate") / "workloads"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionGroup:
    """A number of subscriptions of a topic with equal settings.

    Attributes:
        count: the number of subscriptions.
        kind: "ordered" (exclusive or failover: one consumer reads in order) or "key_shared".
        start: "latest", or "earliest": at the begin of the backlog.
        read_batch: the most entries of a read.
        entries_per_second: the rate of a consumer; 0: no limit.
        lag_seconds: an ordered subscription reads an entry this long after it was written.
        connected_seconds: the range of times that a consumer stays connected; [0, 0]: always.
        disconnected_seconds: the range of times that it stays disconnected.
        consumers: the number of consumers of a key_shared subscription.
        slow_consumers: the number of slow ones among them.
        slow_entries_per_second: the rate of a slow consumer.
        receiver_queue: the most entries sent to a consumer but not processed (receiverQueueSize).
        keys: the number of different message keys.
        most_waiting: the most entries that wait for slow consumers; then reading ahead pauses.
        ack_seconds: the range of times from an entry's processing to its acknowledgement.
        redelivered_share: the share of entries that a key_shared consumer does not acknowledge and
            that it gets once more.
        redelivery_seconds: the time until then.
    """

    count: int = 1
    kind: str = "ordered"
    start: str = "latest"
    read_batch: int = 100
    entries_per_second: float = 0
    lag_seconds: float = 0
    connected_seconds: Range = (0, 0)
    disconnected_seconds: Range = (0, 0)
    consumers: int = 4
    slow_consumers: int = 1
    slow_entries_per_second: float = 20
    receiver_queue: int = 100
    keys: int = 1000
    most_waiting: int = 1000
    ack_seconds: Range = (0, 0)
    redelivered_share: float = 0
    redelivery_seconds: float = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicGroup:
    """A number of topics with equal settings.

    Entries arrive at ``entries_per_second`` on average (a Poisson process); their sizes are uniform
    in ``entry_bytes``. ``backlog`` entries are in the storage, and not in the cache, at the start.
    A ``delayed_share`` of the entries is for delivery after a time in ``delay_seconds``, to the
    key_shared subscriptions; delayedDeliveryMaxDelayInMillis shortens longer delays.
    """

    count: int = 1
    entries_per_second: float = 100
    entry_bytes: Range = (1000, 1000)
    backlog: int = 0
    delayed_share: float = 0
    delay_seconds: Range = (0, 0)
    subscriptions: tuple[SubscriptionGroup, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Topics with their subscriptions for a number of virtual seconds.

    ``settings`` are broker.conf keys over the defaults. ``storage_read_millis`` is the duration of
    a storage read: a number, a [least, most] pair, or percentiles like ``{ p50 = 2, p99 = 20 }``
    with straight lines between them. ``dispatch_millis`` is the time between a write and the reads
    that it wakes. With ``audit_order`` the result counts entries that left the cache before an
    older one.
    """

    name: str
    summary: str
    seconds: float = 20
    seed: int = 1
    storage_read_millis: Latency = FIVE_MILLIS
    dispatch_millis: float = 1
    audit_order: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    topics: tuple[TopicGroup, ...]


def built_in_workloads() -> dict[str, Workload]:
    """The workloads that come with the package, by name."""
    return {name: load_workload(name) for name in built_in_names()}


def built_in_names() -> list[str]:
    names = (file.name for file in _FOLDER.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def load_workload(name: str) -> Workload:
    """Loads a built-in workload or a TOML file. Raises UsageError for a missing or invalid one."""
    return parse_workload(workload_text(name), name)


def workload_text(name: str) -> str:
    """The TOML text of a built-in workload or a file, for :func:`parse_workload`."""
    if name in built_in_names():
        return (_FOLDER / f"{name}.toml").read_text("utf-8")
    if "\0" in name or not Path(name).is_file():
        raise UsageError(
            f"no workload {name!r:.200}; name a TOML file or one of {', '.join(built_in_names())}"
        )
    try:
        return plain_text(name)
    except ConfigError as error:
        raise UsageError(str(error)) from None


def parse_workload(text: str, source: str) -> Workload:
    """Parses a workload. Raises UsageError, which begins with ``source``, for an invalid one."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError, SystemError) as error:
        # Also nesting that is too deep, and integers with too many digits for Python.
        raise UsageError(f"{source}: not TOML: {error}") from None
    table.setdefault("name", Path(source).stem)
    table.setdefault("summary", "")
    workload: Workload = _parse_table(Workload, table, source)
    _check_workload(workload, source)
    return workload


_NESTED: Mapping[tuple[type, str], type] = {
    (Workload, "topics"): TopicGroup,
    (TopicGroup, "subscriptions"): SubscriptionGroup,
}


def _parse_table(kind: type, table: object, where: str) -> Any:
    if not isinstance(table, dict):
        raise UsageError(f"{where}: {table!r} should be a table")
    known = {item.name: item for item in fields(kind)}
    if unknown := sorted(set(table) - set(known)):
        raise UsageError(f"{where}: no key {unknown[0]!r}; the keys are {', '.join(known)}")
    required = (
        n for n, f in known.items() if f.default is MISSING and f.default_factory is MISSING
    )
    if missing := [name for name in required if name not in table]:
        raise UsageError(f"{where}: {missing[0]!r} is missing")
    values = {
        name: _parse_value(kind, known[name], table[name], f"{where}: {name}") for name in table
    }
    return kind(**values)


def _parse_value(kind: type, item: Any, value: object, where: str) -> object:
    nested = _NESTED.get((kind, item.name))
    if nested is not None:
        if not isinstance(value, list):
            raise UsageError(f"{where}: {value!r:.60} should be an array of tables")
        return tuple(
            _parse_table(nested, each, f"{where}[{index}]") for index, each in enumerate(value)
        )
    if item.type == "Latency":
        return parse_latency(value, where)
    if item.type == "Range":
        return _parse_range(value, where)
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
    if not _is_number(value, whole=whole):
        number = "whole number" if whole else "number"
        raise UsageError(
            f"{where}: {value!r:.60} should be a {number} of 0 or more, at most {MAX_NUMBER:,}"
        )
    return value


def _is_number(value: object, *, whole: bool = False) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        return False
    return 0 <= value <= MAX_NUMBER


def _parse_range(value: object, where: str) -> Range:
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) == 2:
        least, most = pair
        if _is_number(least) and _is_number(most) and least <= most:
            return (least, most)
    raise UsageError(
        f"{where}: {value!r:.60} should be a number or [least, most], "
        f"0 <= least <= most <= {MAX_NUMBER:,}"
    )


def _check_workload(workload: Workload, source: str) -> None:
    if workload.seconds <= 0:
        raise UsageError(f"{source}: seconds: {workload.seconds} should be above 0")
    if not workload.topics:
        raise UsageError(f"{source}: the workload has no topics; add a [[topics]] table")
    actors = sum(
        topics.count * (1 + sum(each.count * (1 + each.consumers) for each in topics.subscriptions))
        for topics in workload.topics
    )
    if actors > MAX_ACTORS:
        raise UsageError(
            f"{source}: {actors:,} topics, subscriptions and consumers are too many; "
            f"use {MAX_ACTORS:,} or fewer"
        )
    for what, estimate, most in estimates(workload):
        if estimate > most:
            raise UsageError(
                f"{source}: about {estimate:,.0f} {what} are too many; use {most:,} or fewer"
            )
    for topics in workload.topics:
        if topics.delayed_share > 1:
            raise UsageError(f"{source}: delayed_share: {topics.delayed_share} should be 1 at most")
        if topics.entry_bytes[1] > 64 << 20:
            raise UsageError(
                f"{source}: entry_bytes: {topics.entry_bytes[1]} should be 64 MiB at most"
            )
        for each in topics.subscriptions:
            if each.kind not in ("ordered", "key_shared"):
                raise UsageError(f"{source}: kind: {each.kind!r} should be ordered or key_shared")
            if each.redelivered_share >= 1:
                raise UsageError(
                    f"{source}: redelivered_share: {each.redelivered_share} should be below 1"
                )
            if each.start not in ("latest", "earliest"):
                raise UsageError(f"{source}: start: {each.start!r} should be latest or earliest")
            if each.kind == "key_shared" and not each.slow_consumers <= each.consumers > 0:
                raise UsageError(
                    f"{source}: consumers: {each.consumers} with {each.slow_consumers} slow ones; "
                    "use at least one consumer, and no more slow consumers than consumers"
                )
            if not each.read_batch or not each.receiver_queue or not each.keys:
                raise UsageError(f"{source}: read_batch, receiver_queue and keys should be above 0")
            if each.slow_consumers and not each.slow_entries_per_second:
                raise UsageError(
                    f"{source}: slow_entries_per_second: 0 should be above 0 for slow consumers"
                )


def estimates(workload: Workload) -> Iterator[tuple[str, float, int]]:
    """The quantities of a simulation that decide its time and memory, each with its bound."""
    entries = deliveries = connections = 0.0
    for topics in workload.topics:
        each = topics.entries_per_second * workload.seconds + topics.backlog
        entries += topics.count * each
        for group in topics.subscriptions:
            count = topics.count * group.count
            deliveries += count * each
            if group.connected_seconds[1]:
                mean = sum((*group.connected_seconds, *group.disconnected_seconds)) / 2
                connections += count * workload.seconds / mean
    yield "entries, written and in backlogs,", entries, MAX_ENTRIES
    yield "deliveries of entries to subscriptions", deliveries, MAX_DELIVERIES
    yield "connections of consumers", connections, MAX_CONNECTIONS
