"""CacheConfig: bounds, derived values, changes, and settings without effect."""

from __future__ import annotations

import dataclasses
import typing

import pytest

from pulsar_ml import EntryCacheManager
from pulsar_ml._core import EVICTION_POLICIES
from pulsar_ml.config import BY_KEY, SETTINGS, CacheConfig, Setting, without_effect
from pulsar_ml.errors import ConfigError

MB = 2**20


def test_the_fields_are_the_settings() -> None:
    hints = typing.get_type_hints(CacheConfig)
    fields = {field.name: hints[field.name] for field in dataclasses.fields(CacheConfig)}
    assert fields == {s.name: s.kind | None if s.derived else s.kind for s in SETTINGS}
    assert len(BY_KEY) == len(SETTINGS)
    assert all(getattr(CacheConfig(), s.name) == s.default for s in SETTINGS)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_a_setting_takes_its_bounds_and_nothing_beyond(setting: Setting) -> None:
    assert setting.meaning.endswith(".")
    assert (setting.kind in (int, float)) == bool(setting.unit) == (setting.low is not None)
    if setting.low is not None and setting.high is not None:
        for bound in (setting.low, setting.high):
            assert setting.checked(bound) == bound
        above = setting.high + (1 if setting.kind is int else 0.5)
        for beyond in (setting.low - 1, above, "1", True, float("nan")):
            with pytest.raises(ValueError, match=setting.key):
                setting.checked(beyond)
    else:
        for wrong in (0, 1.0, "", b"x"):
            with pytest.raises(ValueError, match=setting.key):
                setting.checked(wrong)
    if not setting.derived:
        with pytest.raises(ValueError, match="cannot be None"):
            setting.checked(None)


def test_the_size_is_the_given_one_or_a_fifth_of_memory() -> None:
    assert CacheConfig(cache_size_mb=3).cache_size_bytes() == 3 * MB
    assert CacheConfig(cache_size_mb=0).cache_size_bytes() == 0
    assert not CacheConfig(cache_size_mb=0).cache_enabled
    assert CacheConfig().cache_size_bytes(memory=1024 * MB) == 204 * MB
    assert CacheConfig().cache_size_bytes(memory=100 * MB) == 64 * MB
    assert CacheConfig().cache_size_bytes() >= 64 * MB


def test_the_grace_period_is_twice_the_ttl_unless_given() -> None:
    assert CacheConfig().continue_caching_ms == 2000
    assert CacheConfig(cache_eviction_time_threshold_millis=700).continue_caching_ms == 1400
    grace = "continue_caching_added_entries_after_last_active_cursor_leaves_millis"
    config = CacheConfig().replace(**{grace: 5})
    assert config.continue_caching_ms == 5
    assert config.replace(cache_eviction_by_expected_read_count=False).continue_caching_ms == 0


def test_an_effective_value_is_derived_only_where_the_setting_is_not_set() -> None:
    size, grace, state = [setting.key for setting in SETTINGS if setting.derived]
    config = CacheConfig()
    assert config.effective(size) == config.cache_size_bytes() // MB
    assert (config.effective(grace), config.effective(state)) == (2000, 5 * MB)
    by_ranges = CacheConfig(max_unacked_ranges_to_persist=7)
    assert by_ranges.effective(state) is None
    for setting in SETTINGS:
        if not setting.derived and setting.key != "delayedDeliveryPruneMinIntervalMillis":
            assert config.effective(setting.key) == setting.default
    assert config.effective("delayedDeliveryPruneMinIntervalMillis") == 50
    faster = CacheConfig(cache_eviction_frequency=50.0)
    assert faster.effective("managedLedgerCacheEvictionIntervalMs") == 20
    changed = CacheConfig(cache_size_mb=3, max_ack_state_in_bytes_to_persist=2048)
    assert (changed.effective(size), changed.effective(state)) == (3, 2048)


def test_the_older_frequency_takes_the_place_of_the_interval() -> None:
    assert CacheConfig(cache_eviction_interval_ms=30).eviction_interval_ms == 30
    both = CacheConfig(cache_eviction_interval_ms=30, cache_eviction_frequency=100.0)
    assert both.eviction_interval_ms == 10
    assert CacheConfig(cache_eviction_frequency=1000.0).eviction_interval_ms == 1
    assert CacheConfig(cache_eviction_frequency=5e-324).eviction_interval_ms > 10**15


def test_mark_delete_is_subordinate_to_expected_reads() -> None:
    assert not CacheConfig(
        cache_eviction_by_mark_deleted_position=True
    ).evicts_by_mark_deleted_position
    assert CacheConfig(
        cache_eviction_by_mark_deleted_position=True, cache_eviction_by_expected_read_count=False
    ).evicts_by_mark_deleted_position


def test_the_pruning_interval_follows_the_tick_within_bounds() -> None:
    for tick, interval in ((1, 5), (20, 20), (1000, 50)):
        config = CacheConfig(delayed_delivery_tick_time_millis=tick)
        assert config.delayed_delivery_prune_interval_ms == interval
    config = CacheConfig(delayed_delivery_prune_min_interval_millis=7)
    assert config.delayed_delivery_prune_interval_ms == 7


def test_replace_and_diff_tell_what_a_running_cache_takes_over() -> None:
    before = CacheConfig()
    after = before.replace(cache_size_mb=5, cache_copy_entries=True)
    assert [
        (change.key, change.old, change.new, change.dynamic) for change in before.diff(after)
    ] == [
        ("managedLedgerCacheSizeMB", None, 5, True),
        ("managedLedgerCacheCopyEntries", False, True, False),
    ]
    assert before.diff(CacheConfig()) == ()
    assert before.replace() == before
    with pytest.raises(ConfigError, match="no setting 'size'"):
        before.replace(size=3)
    with pytest.raises(ConfigError, match=r"cannot be 2\.0"):
        before.replace(cache_eviction_watermark=2.0)


def test_a_configuration_is_a_value() -> None:
    assert CacheConfig() == CacheConfig()
    assert hash(CacheConfig()) == hash(CacheConfig())
    with pytest.raises(dataclasses.FrozenInstanceError):
        CacheConfig().cache_size_mb = 3  # type: ignore[misc]


def test_what_others_make_ineffective_is_named_and_nothing_else() -> None:
    assert without_effect(CacheConfig()) == {}
    assert without_effect(CacheConfig(cache_size_mb=100, cache_eviction_watermark=0.5)) == {}
    marks = CacheConfig(cache_eviction_by_mark_deleted_position=True)
    assert list(without_effect(marks)) == ["cacheEvictionByMarkDeletedPosition"]
    assert without_effect(marks.replace(cache_eviction_by_expected_read_count=False)) == {}
    assert list(without_effect(CacheConfig(cache_size_mb=0, cache_copy_entries=True))) == [
        "managedLedgerCacheCopyEntries"
    ]
    assert list(without_effect(CacheConfig(cache_eviction_watermark=0.99))) == [
        "managedLedgerCacheEvictionWatermark"
    ]


def test_a_manager_is_made_of_a_configuration_and_takes_its_changes_while_it_runs() -> None:
    before = CacheConfig(
        cache_size_mb=1, cache_eviction_policy_name="released_queue", cache_copy_entries=True
    )
    with EntryCacheManager(**before.manager_keywords()) as manager:
        assert (manager.max_size, manager.policy) == (MB, "released_queue")
        cache = manager.range_cache("a")
        for number in range(8):
            cache.put((1, number), bytes(100_000))
        assert manager.size == 800_000
        after = before.replace(cache_size_mb=0)
        assert all(change.dynamic for change in before.diff(after))
        manager.configure(**after.dynamic_manager_keywords())
        assert (manager.max_size, manager.size) == (0, 0)


def test_without_expected_reads_nothing_is_extended_for_them() -> None:
    assert CacheConfig().dynamic_manager_keywords()["max_requeue_count"] == 5
    off = CacheConfig(cache_eviction_by_expected_read_count=False)
    assert off.dynamic_manager_keywords()["max_requeue_count"] == 0


def test_the_policies_of_a_manager_can_be_named() -> None:
    assert set(EVICTION_POLICIES) <= set(BY_KEY["managedLedgerCacheEvictionPolicyName"].choices)
