"""Variants: the eviction policies with their settings that a simulation compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.config import Reading, read_mapping
from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.workload import Workload


@dataclass(frozen=True, slots=True)
class Variant:
    """Named broker.conf settings, the policy among them, which override those of the workload."""

    name: str
    summary: str
    settings: Mapping[str, Any] = field(default_factory=dict)


POLICY = "managedLedgerCacheEvictionPolicyName"

# Releases of Pulsar that are a policy with further settings, or have a name of their own.
RELEASES: tuple[Variant, ...] = (
    Variant("pulsar_4_1", "PIP-430 as released", {POLICY: "released_queue"}),
    Variant(
        "pulsar_5_0",
        "PIP-430 in Pulsar 5.0, with its default of not extending for an access",
        {
            POLICY: "released_5",
            "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": False,
        },
    ),
    Variant("stash", "the first revision of PIP-430", {POLICY: "stash_queue"}),
    Variant(
        "pulsar_4_0",
        "Pulsar before PIP-430: a scan of every ledger, no expected reads",
        {
            POLICY: "ledger_scan",
            "cacheEvictionByExpectedReadCount": False,
            "managedLedgerCacheEvictionExtendTTLOfRecentlyAccessed": False,
        },
    ),
)


def all_variants() -> Iterator[Variant]:
    """The default policy, the releases of Pulsar, and every policy that none of them has."""
    default, *others = (
        Variant(name, summary, {POLICY: name}) for name, summary in EVICTION_POLICIES.items()
    )
    yield default
    yield from RELEASES
    released = {variant.settings[POLICY] for variant in RELEASES}
    yield from (variant for variant in others if variant.name not in released)


VARIANTS: tuple[Variant, ...] = tuple(all_variants())


def chosen_variants(names: tuple[str, ...], overrides: Mapping[str, Any]) -> list[Variant]:
    """The variants of these names, or all variants, with additional settings."""
    known = {variant.name: variant for variant in VARIANTS}
    for name in names:
        if name not in known:
            raise UsageError(f"no variant {name!r}; the variants are {', '.join(known)}")
    variants = [known[name] for name in names] or VARIANTS
    return [replace(each, settings={**each.settings, **overrides}) for each in variants]


def cache_settings(workload: Workload, variant: Variant) -> Reading:
    """The cache settings of a workload under a variant, whose settings come last.

    Raises ConfigError for an invalid value, and UsageError for a key that is not a cache setting.
    """
    reading = read_mapping({**workload.settings, **variant.settings})
    if reading.unknown:
        raise UsageError(
            f"{workload.name}: {next(iter(reading.unknown))!r} is not a setting of the cache; "
            "remove it or correct its spelling"
        )
    return reading
