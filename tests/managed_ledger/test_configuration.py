"""A whole broker built from one configuration and measured by one registry."""

from __future__ import annotations

import pytest

from pulsar_ml import EntryCacheManager, UsageError
from pulsar_ml.config import CacheConfig, read_mapping
from pulsar_ml.managed_ledger import LedgerSettings, ManagedLedgerFactory, MemoryStorage
from pulsar_ml.metrics import Registry
from tests.managed_ledger.kit import SECONDS, texts


def made_of(config: CacheConfig) -> tuple[EntryCacheManager, ManagedLedgerFactory]:
    manager = EntryCacheManager(**config.manager_keywords())
    settings = LedgerSettings(**config.ledger_keywords())
    factory = ManagedLedgerFactory(
        MemoryStorage(), manager, settings=settings, **config.factory_keywords()
    )
    return manager, factory


def test_settings_under_pulsars_names_reach_every_part() -> None:
    config = read_mapping(
        {
            "managedLedgerCacheSizeMB": "64",
            "managedLedgerMaxReadsInFlightSizeInMB": "2",
            "cacheEvictionByExpectedReadCount": "false",
            "cacheEvictionByMarkDeletedPosition": "true",
            "managedLedgerCursorBackloggedThreshold": "7",
        }
    ).config
    manager, factory = made_of(config)
    with manager, factory:
        assert manager.max_size == 64 << 20
        assert factory.limiter.max_bytes == 2 << 20
        assert factory.settings.cache_eviction_by_mark_deleted_position
        assert factory.settings.managed_ledger_cursor_backlogged_threshold == 7
        # Without expected reads there is no grace period.
        settings = factory.settings
        assert settings.continue_caching_added_entries_after_last_active_cursor_leaves_millis == 0


def test_settings_of_acknowledgements_reach_every_cursor() -> None:
    reading = read_mapping(
        {
            "managedLedgerMaxUnackedRangesToPersist": "1",
            "managedLedgerMaxBatchDeletedIndexToPersist": "2",
            "managedLedgerMaxUnackedRangesToPersistInMetadataStore": "3",
            "managedLedgerMaxAckStateInBytesToPersist": "4096",
            "dispatcherPauseOnAckPersistentStateEnabled": "true",
            "managedLedgerCursorPositionFlushSeconds": "5",
            "managedLedgerDefaultMarkDeleteRateLimit": "0.5",
        }
    )
    assert LedgerSettings(**reading.config.ledger_keywords()) == LedgerSettings(
        managed_ledger_max_unacked_ranges_to_persist=1,
        managed_ledger_max_batch_deleted_index_to_persist=2,
        managed_ledger_max_unacked_ranges_to_persist_in_metadata_store=3,
        managed_ledger_max_ack_state_in_bytes_to_persist=4096,
        dispatcher_pause_on_ack_state_persistent_enabled=True,
        managed_ledger_cursor_position_flush_seconds=5,
        managed_ledger_default_mark_delete_rate_limit=0.5,
        # Twice the time to live of cached entries.
        continue_caching_added_entries_after_last_active_cursor_leaves_millis=2000,
    )


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 5 * 2**20),
        ({"max_unacked_ranges_to_persist": 20_000}, None),
        (
            {"max_unacked_ranges_to_persist": 20_000, "max_ack_state_in_bytes_to_persist": 2048},
            2048,
        ),
        ({"max_ack_state_in_bytes_to_persist": 2048}, 2048),
    ],
)
def test_bytes_decide_unless_only_the_number_of_ranges_is_set(
    settings: dict[str, int], expected: int | None
) -> None:
    keywords = CacheConfig(**settings).ledger_keywords()  # type: ignore[arg-type]
    assert keywords["managed_ledger_max_ack_state_in_bytes_to_persist"] == expected


def test_the_settings_of_a_ledger_have_the_defaults_of_a_configuration() -> None:
    assert LedgerSettings(**CacheConfig().ledger_keywords()) == LedgerSettings()


@pytest.mark.parametrize("size", [1023, 5 * 2**20 + 1])
def test_bytes_outside_the_proposal_are_refused(size: int) -> None:
    with pytest.raises(UsageError, match="managed_ledger_max_ack_state_in_bytes_to_persist"):
        LedgerSettings(managed_ledger_max_ack_state_in_bytes_to_persist=size)


def test_metrics_of_a_broker_are_what_was_done() -> None:
    manager, factory = made_of(read_mapping({"managedLedgerMaxReadsInFlightSizeInMB": "1"}).config)
    registry = Registry()
    with manager, factory:
        ledger = factory.open("topic")
        registry.add_manager(manager)
        registry.add_ledgers(lambda: len(factory.ledgers))
        registry.add_inflight_reads(lambda: (factory.limiter.max_bytes, factory.limiter.remaining))
        registry.add_pending_reads(ledger.cache.pending.counts)
        cursor = ledger.open_cursor("a", earliest=True)
        written = [str(number) for number in range(10)]
        for data in written:
            ledger.add_entry(data.encode())
        manager.evict_bytes(5)  # the first five entries, of one byte each
        entries = cursor.read_entries(10).result(SECONDS)
        found = registry.read()
        assert found["ledgers"] == 1
        assert (found["hits"], found["pending_missed"], found["pending_entries_read"]) == (5, 5, 5)
        assert (found["inserted_entries"], found["evictions"]) == (15, manager.stats().evictions)
        assert found["inflight_used"] == found["inflight_limit"] - found["inflight_free"] > 0
        assert texts(entries) == written
        assert registry.read()["inflight_used"] == 0
