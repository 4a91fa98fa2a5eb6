"""Today's settings beside candidates: ties, the frontier of memory and hits, and an advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pulsar_ml.config import BY_KEY
from pulsar_ml.simulate.result import Result
from pulsar_ml.simulate.variant import POLICY, Variant, cache_settings
from pulsar_ml.simulate.workload import Workload

MIB = 1 << 20
TODAY = "today"
TTL = "managedLedgerCacheEvictionTimeThresholdMillis"
EXTENSIONS = "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
ACCESSED = "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed"
EXPECTED = "cacheEvictionByExpectedReadCount"
SIZE = "managedLedgerCacheSizeMB"
# The policy of a release, and its defaults that differ from those of 4.2.
RELEASES: Mapping[str, Mapping[str, Any]] = {
    "4.0": {POLICY: "ledger_scan", EXPECTED: False},
    "4.2": {POLICY: "released_queue"},
    "5.0": {POLICY: "released_5", ACCESSED: False},
}
SHORT = {
    SIZE: "cache size",
    TTL: "time to live",
    EXTENSIONS: "extensions",
    ACCESSED: "extend on access",
    EXPECTED: "expected reads",
}
LEAST_GAIN = 0.01  # of the entries from storage
LEAST_SAVING = 0.1  # of the memory, at the same reads
LEAST_MIB = 1.0  # likewise: less memory is not worth a change


def candidates(workload: Workload, base: Mapping[str, Any], release: str) -> list[Variant]:
    """Today's settings, and each with one of Pulsar's settings changed. Today's come first.

    ``base`` are the settings of a broker.conf over those of the workload. Raises ConfigError and
    UsageError for invalid settings.
    """
    known = {**RELEASES[release], **workload.settings, **base}
    today = Variant(TODAY, "", known)
    config = cache_settings(workload, today).config
    size, ttl = config.effective(SIZE), config.effective(TTL)
    extensions = config.effective(EXTENSIONS)
    assert isinstance(size, int) and isinstance(ttl, int) and isinstance(extensions, int)
    wanted: dict[str, list[Any]] = {
        SIZE: [max(1, size // 2), size * 2],
        TTL: [ttl // 2, ttl * 2, ttl * 5],
    }
    if release != "4.0":
        wanted[EXPECTED] = [not config.effective(EXPECTED)]
        wanted[EXTENSIONS] = [0, extensions * 2, extensions * 4]
        wanted[ACCESSED] = [not config.effective(ACCESSED)]
    found = [today]
    for key, values in wanted.items():
        setting = BY_KEY[key]
        for value in dict.fromkeys(values):
            if value != config.effective(key):
                name = f"{key}={setting.format(setting.checked(value))}"
                found.append(Variant(name, "", {**known, key: value}))
    return found


def short(name: str) -> str:
    """A few words for the ``KEY=VALUE`` of a candidate."""
    key, equals, value = name.partition("=")
    unit = f" {BY_KEY[key].unit}" if equals and BY_KEY[key].unit in ("MB", "ms") else ""
    return f"{SHORT.get(key, key)} {value}{unit}" if equals else name


@dataclass(frozen=True, slots=True)
class Choice:
    """Settings with equal figures: ``names`` has all of them, ``result`` the figures."""

    names: tuple[str, ...]
    result: Result

    def gain(self, today: Choice) -> float | None:
        """The share of today's entries from storage that this choice does not read.

        None where today's settings read nothing from storage, and these read something.
        """
        before, now = today.result.storage_entries, self.result.storage_entries
        if before:
            return 1 - now / before
        return None if now else 0.0

    def gain_text(self, today: Choice) -> str:
        gain = self.gain(today)
        return "worse" if gain is None else f"{gain:.1%}"


def shown(result: Result) -> dict[str, str]:
    """The figures by which choices are compared, as a table prints them."""
    return {
        "from storage": f"{result.storage_entries:,}",
        "hit rate": f"{result.hit_rate:.1%}",
        "joined": f"{result.joined_rate:.1%}",
        **{f"{name} ms": f"{result.read_millis[name]:,.3g}" for name in ("p50", "p99", "p99.9")},
        "MiB mean": f"{result.mean_pinned_bytes / MIB:,.1f}",
        "MiB most": f"{result.max_pinned_bytes / MIB:,.1f}",
    }


def merged(results: Sequence[Result]) -> list[Choice]:
    """The choices of results of one workload and seed: equal figures, as shown, are one choice.

    The first result's choice comes first, the others by entries from storage and then by memory.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        groups.setdefault(tuple(shown(result).values()), []).append(result)
    choices = [Choice(tuple(each.variant for each in group), group[0]) for group in groups.values()]
    return [choices[0], *sorted(choices[1:], key=cost)]


def cost(choice: Choice) -> tuple[float, float]:
    return (choice.result.storage_entries, choice.result.mean_pinned_bytes)


def frontier(choices: Sequence[Choice]) -> list[Choice]:
    """The choices that no other one beats: by memory ascending, each has more hits than before."""
    found: list[Choice] = []
    for choice in sorted(choices, key=lambda one: (one.result.mean_pinned_bytes, -one.result.hits)):
        if not found or choice.result.hits > found[-1].result.hits:
            found.append(choice)
    return found


def saving(choice: Choice, today: Choice) -> float:
    """The bytes of memory, on average, that a choice needs less than today's settings."""
    return today.result.mean_pinned_bytes - choice.result.mean_pinned_bytes


def advice(choices: Sequence[Choice]) -> str:
    """One sentence: which change of today's settings pays, and what it costs."""
    today, *others = choices
    best = min(others, key=cost, default=today)
    more = (best.result.mean_pinned_bytes - today.result.mean_pinned_bytes) / MIB
    memory = f"{abs(more):,.1f} MiB {'more' if more >= 0 else 'less'} memory on average"
    if abs(more) < 0.05:
        memory = "as much memory on average"
    if (best.gain(today) or 0.0) >= LEAST_GAIN:
        return (
            f"Set {best.names[0]}: {best.gain_text(today)} fewer entries come from storage, "
            f"with {memory}."
        )
    cheaper = [
        each
        for each in others
        if each.result.storage_entries <= today.result.storage_entries
        and saving(each, today)
        >= max(LEAST_SAVING * today.result.mean_pinned_bytes, LEAST_MIB * MIB)
    ]
    if cheaper:
        best = min(cheaper, key=lambda each: each.result.mean_pinned_bytes)
        less = saving(best, today) / MIB
        return (
            f"Set {best.names[0]}: no more entries come from storage, with {less:,.1f} MiB less "
            "memory on average."
        )
    return (
        "Keep today's settings: no candidate reads 1 % less from storage, or needs 10 % and 1 MiB "
        "less memory for the same reads."
    )
