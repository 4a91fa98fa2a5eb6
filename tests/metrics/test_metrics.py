"""Both exports have the documented names, and the numbers that the tests counted."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from pulsar_ml import EntryCacheManager, InMemoryDelayedDeliveryTrackerFactory
from pulsar_ml.errors import UsageError
from pulsar_ml.managed_ledger.topic_names import topic_name
from pulsar_ml.metrics import LEFT_OUT, PrometheusCollector, Registry, otel
from tests.managed_ledger.kit import require

# The names that Pulsar documents, with unit and attribute values.
OPENTELEMETRY = {
    "pulsar.broker.managed_ledger.count": ("{managed_ledger}", "", {""}),
    "pulsar.broker.managed_ledger.cache.eviction.count": ("{eviction}", "", {""}),
    "pulsar.broker.managed_ledger.cache.entry.count": (
        "{entry}", "pulsar.managed_ledger.cache.entry.status", {"active", "inserted", "evicted"}),
    "pulsar.broker.managed_ledger.cache.entry.size": ("{By}", "", {""}),
    "pulsar.broker.managed_ledger.cache.operation.count": (
        "{entry}", "pulsar.managed_ledger.cache.operation.status", {"hit", "miss"}),
    "pulsar.broker.managed_ledger.cache.operation.size": (
        "{By}", "pulsar.managed_ledger.cache.operation.status", {"hit", "miss"}),
    "pulsar.broker.managed_ledger.inflight.read.limit": ("By", "", {""}),
    "pulsar.broker.managed_ledger.inflight.read.usage": (
        "By", "pulsar.managed_ledger.inflight.read.usage.state", {"used", "free"}),
}  # fmt: skip
PROMETHEUS = {
    "pulsar_ml_count", "pulsar_ml_cache_used_size", "pulsar_ml_cache_entries",
    "pulsar_ml_cache_inserted_entries_total", "pulsar_ml_cache_evicted_entries_total",
    "pulsar_ml_cache_evictions", "pulsar_ml_cache_hits_rate", "pulsar_ml_cache_misses_rate",
    "pulsar_ml_cache_hits_throughput", "pulsar_ml_cache_misses_throughput",
    "pulsar_ml_reads_inflight_bytes", "pulsar_ml_reads_available_inflight_bytes",
}  # fmt: skip
PENDING = {
    "entries_read", "entries_notread", "matched", "matched_included", "missed",
    "matched_overlapping_miss_left", "matched_overlapping_miss_right",
    "matched_overlapping_miss_both",
}  # fmt: skip
OURS = {"pulsar.broker.managed_ledger.cache.pinned.size", "pulsar_ml_cache_pinned_size"}


Points = dict[tuple[tuple[str, object], ...], float]


SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 100 * SECOND

    def __call__(self) -> int:
        return self.now


class Exports:
    """Both exports of one registry, with a clock for the periods."""

    def __init__(self, registry: Registry) -> None:
        self.clock = Clock()
        self.reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self.reader])
        otel.export(registry, provider=self.provider, attributes={"pulsar.cluster": "c1"})
        self.registry = CollectorRegistry()
        self.registry.register(PrometheusCollector(registry, cluster="c1", clock=self.clock))

    def opentelemetry(self) -> dict[str, tuple[str, Points]]:
        """The unit and the values by attributes, without the cluster."""
        found: dict[str, tuple[str, Points]] = {}
        data = self.reader.get_metrics_data()
        for metric in data.resource_metrics[0].scope_metrics[0].metrics if data else ():
            points: Points = {}
            for point in metric.data.data_points:
                assert isinstance(point, NumberDataPoint)
                attributes: dict[str, object] = dict(point.attributes or {})
                assert attributes.pop("pulsar.cluster") == "c1"
                points[tuple(attributes.items())] = point.value
            found[metric.name] = (metric.unit or "", points)
        return found

    def prometheus(self) -> dict[str, float]:
        """The values parsed like a scraper does."""
        found = {}
        for family in text_string_to_metric_families(generate_latest(self.registry).decode()):
            for sample in family.samples:
                labels = dict(sample.labels)
                assert labels.pop("cluster") == "c1"
                found[sample.name + (str(sorted(labels.items())) if labels else "")] = sample.value
        return found


def disagreements(exports: Exports, counted: Mapping[str, int]) -> list[str]:
    """Differences between the exports and the test's own counts, after a period of 60 s."""
    exports.clock.now += 60 * SECOND
    first = {name: points for name, (_, points) in exports.opentelemetry().items()}
    second = exports.prometheus()
    cache = "pulsar.broker.managed_ledger.cache"
    entry, operation = f"{cache}.entry.count", "pulsar.managed_ledger.cache.operation.status"
    status = "pulsar.managed_ledger.cache.entry.status"
    rows = [
        ("size", first[f"{cache}.entry.size"][()], second["pulsar_ml_cache_used_size"]),
        ("active", first[entry][((status, "active"),)], second["pulsar_ml_cache_entries"]),
        (
            "inserted",
            first[entry][((status, "inserted"),)],
            second["pulsar_ml_cache_inserted_entries_total"],
        ),
        (
            "evicted",
            first[entry][((status, "evicted"),)],
            second["pulsar_ml_cache_evicted_entries_total"],
        ),
        ("evictions", first[f"{cache}.eviction.count"][()], second["pulsar_ml_cache_evictions"]),
        ("pinned", first[f"{cache}.pinned.size"][()], second["pulsar_ml_cache_pinned_size"]),
    ]
    for what, unit in (("count", "rate"), ("size", "throughput")):
        for one, name in (("hit", "hits"), ("miss", "misses")):
            rows.append(
                (
                    f"{one} {what}",
                    first[f"{cache}.operation.{what}"][((operation, one),)],
                    round(second[f"pulsar_ml_cache_{name}_{unit}"] * 60.0, 6),
                )
            )
    return [
        f"{name}: counted {counted[name]}, OpenTelemetry {one}, Prometheus {other}"
        for name, one, other in rows
        if not counted[name] == one == other
    ]


def whole_registry(manager: EntryCacheManager) -> Registry:
    registry = Registry()
    registry.add_manager(manager)
    registry.add_ledgers(lambda: 3)
    registry.add_inflight_reads(lambda: (1000, 400))
    registry.add_pending_reads(lambda: dict.fromkeys(PENDING, 7))
    return registry


def test_both_exports_have_the_documented_names_units_and_attributes() -> None:
    with EntryCacheManager() as manager:
        exports = Exports(whole_registry(manager))
        seen = exports.opentelemetry()
        assert set(seen) - OURS == set(OPENTELEMETRY)
        for name, (unit, attribute, values) in OPENTELEMETRY.items():
            assert seen[name][0] == unit
            wanted = {((attribute, value),) if attribute else () for value in values}
            assert set(seen[name][1]) == wanted
        pending = {f"pulsar_ml_cache_pendingreads_{name}_total" for name in PENDING}
        assert set(exports.prometheus()) - OURS == PROMETHEUS | pending
        assert not set(LEFT_OUT) & (set(seen) | set(exports.prometheus()))


def test_every_event_counts_what_is_documented_and_nothing_else() -> None:
    with EntryCacheManager(max_size=1000, watermark=0.5) as manager:
        registry = whole_registry(manager)
        exports = Exports(registry)
        cache = manager.range_cache("a")
        counted: Counter[str] = Counter()
        for number in range(9):
            cache.put((1, number), b"x" * 100)
            counted.update(inserted=1, active=1, size=100, pinned=100)
        assert not cache.put((1, 3), b"y" * 50)  # a rejected duplicate does not count
        for number in (2, 4):
            with require(cache.get((1, number))):
                counted.update({"hit count": 1, "hit size": 100})
        assert cache.get((1, 77)) is None  # a miss counts once storage has answered
        cache.count_misses(entries=3, bytes=250)
        counted.update({"miss count": 3, "miss size": 250})
        cache.remove_range((1, 0), (1, 0))  # invalidation counts evicted entries, but no eviction
        counted.update(evicted=1, active=-1, size=-100, pinned=-100)
        manager.evict_entries_before(0)  # a time pass does not count either
        assert disagreements(exports, counted) == []


def test_a_size_pass_is_an_eviction_and_a_time_pass_is_none() -> None:
    with EntryCacheManager(
        max_size=1000, watermark=0.5, max_requeue_count=0, extend_ttl_of_recently_accessed=False
    ) as manager:
        exports = Exports(whole_registry(manager))
        cache = manager.range_cache("a")
        for number in range(10):
            cache.put((1, number), b"x" * 100, timestamp_ns=number)
        # The tenth put exceeded 980 bytes, so a pass evicted down to 500.
        counted = Counter(inserted=10, evicted=5, active=5, size=500, pinned=500, evictions=1)
        assert disagreements(exports, counted) == []
        manager.evict_entries_before(2**40, now_ns=2**40)
        counted = Counter(inserted=10, evicted=10, evictions=0)
        # Prometheus has the last period, OpenTelemetry the time since the start.
        assert disagreements(exports, counted) == [
            "evictions: counted 0, OpenTelemetry 1, Prometheus 0.0"
        ]


def test_a_source_that_counts_duplicates_is_noticed() -> None:
    """A negative control of the comparison."""

    class Wrong:
        pinned_size = 0

        def __init__(self, manager: EntryCacheManager) -> None:
            self.manager = manager

        def stats(self) -> object:
            stats = self.manager.stats()
            return stats._replace(inserted_entries=stats.inserted_entries + 1)

    with EntryCacheManager() as manager:
        registry = Registry()
        registry.add_manager(Wrong(manager))  # type: ignore[arg-type]
        found = disagreements(Exports(registry), Counter())
        assert [line.split(":")[0] for line in found] == ["active", "inserted"]


def test_threads_and_the_eviction_thread_lose_no_event() -> None:
    threads, rounds = 6, 400
    with EntryCacheManager(max_size=20_000, watermark=0.5, start=True) as manager:
        exports = Exports(whole_registry(manager))
        barrier = threading.Barrier(threads)
        counts: list[Counter[str]] = [Counter() for _ in range(threads)]

        def work(thread: int) -> None:
            mine, cache = counts[thread], manager.range_cache(f"ledger {thread % 3}")
            barrier.wait()
            for turn in range(rounds):
                length = 20 + turn % 50
                if cache.put((1, (turn * 3 + thread) % 150), b"x" * length):
                    mine.update(inserted=1, bytes=length)
                found = cache.get((1, (turn * 7) % 150))
                if found is None:
                    cache.count_misses(entries=1, bytes=length)
                    mine.update({"miss count": 1, "miss size": length})
                else:
                    with found:
                        mine.update({"hit count": 1, "hit size": len(found)})
                if turn % 40 == thread:
                    removed = cache.remove_range((1, 10), (1, 40))
                    mine.update(removed=removed.entries)

        workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        manager.stop()
        total: Counter[str] = sum(counts, Counter())
        caches = [manager.range_cache(f"ledger {number}") for number in range(3)]
        left = [entry for cache in caches for entry in cache.get_range((1, 0), (1, 149))]
        # The ranges just read are hits, too.
        total.update({"hit count": len(left), "hit size": sum(map(len, left))})
        counted = total + Counter(
            active=len(left), size=sum(map(len, left)), pinned=sum(map(len, left)), evictions=0
        )
        counted["evicted"] = total["inserted"] - len(left)
        counted["evictions"] = manager.stats().evictions
        assert total["removed"] <= counted["evicted"]
        assert total["inserted"] > len(left) > 0
        assert disagreements(exports, counted) == []


def test_a_limiter_that_is_off_says_minus_one_in_the_old_gauges_only() -> None:
    registry = Registry()
    registry.add_inflight_reads(lambda: (0, 0))
    exports = Exports(registry)
    assert exports.opentelemetry() == {}
    assert exports.prometheus() == {
        "pulsar_ml_reads_inflight_bytes": -1.0, "pulsar_ml_reads_available_inflight_bytes": -1.0,
    }  # fmt: skip


def test_sources_of_the_same_quantity_add_up() -> None:
    with EntryCacheManager() as one, EntryCacheManager() as other:
        registry = Registry()
        registry.add_manager(one)
        registry.add_manager(other)
        one.range_cache("a").put((1, 1), b"12345")
        other.range_cache("a").put((1, 1), b"123")
        assert Exports(registry).prometheus()["pulsar_ml_cache_used_size"] == 8


def test_rates_are_those_of_the_last_whole_period() -> None:
    hits = {"hits": 0}
    registry = Registry()
    registry.add(lambda: dict(hits))
    exports = Exports(registry)
    rates = []
    for seconds, more in ((59, 30), (1, 30), (30, 90), (50, 30)):
        exports.clock.now += seconds * SECOND
        hits["hits"] += more
        rates.append(exports.prometheus()["pulsar_ml_cache_hits_rate"])
    assert rates == [0.0, 1.0, 1.0, 1.5]


def test_gauges_with_labels_come_with_their_labels() -> None:
    def sizes() -> Iterable[tuple[tuple[str, str, str], int]]:
        yield ("public/default", "orders", "s1"), 64
        yield ("public/default", "orders", "s2"), 0

    registry = Registry()
    registry.add_cursor_metadata(sizes)
    exports = Exports(registry)
    name = "pulsar_cursor_metadata_size_in_memory_bytes"
    unit, points = exports.opentelemetry()[name]
    assert (unit, list(points.values())) == ("By", [64, 0])
    assert [value for key, value in exports.prometheus().items() if key.startswith(name)] == [
        64.0,
        0.0,
    ]
    assert "('subscription', 's1')" in next(iter(exports.prometheus()))


TOPIC = "persistent://public/default/orders"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        (TOPIC, ("persistent", "public", "public/default", TOPIC, None)),
        (
            "public/default/persistent/orders",
            ("persistent", "public", "public/default", TOPIC, None),
        ),
        ("a/b/persistent/x%2Fy%25", ("persistent", "a", "a/b", "persistent://a/b/x/y%", None)),
        (
            "a/b/non-persistent/x-partition-12",
            ("non-persistent", "a", "a/b", "non-persistent://a/b/x-partition-12", 12),
        ),
        (
            "a/us-west/b/persistent/x",
            ("persistent", "a", "a/us-west/b", "persistent://a/us-west/b/x", None),
        ),
        ("orders", ("", "", "", "orders", None)),
        ("a/b/orders", ("", "", "", "a/b/orders", None)),
        ("http://a/b/c", ("", "", "", "http://a/b/c", None)),
        ("persistent://a", ("", "", "", "persistent://a", None)),
    ],
)
def test_both_forms_of_names_have_the_same_parts(name: str, parts: tuple[object, ...]) -> None:
    assert topic_name(name) == parts


def test_delayed_messages_have_pulsars_names_and_the_labels_of_either_form() -> None:
    topics = InMemoryDelayedDeliveryTrackerFactory(tick_time_ms=10, topic_manager_idle_ms=9)
    views = [
        topics.new_tracker("public/default/persistent/orders-partition-3", subscription=name)
        for name in ("s1", "s2")
    ]
    for number in (1, 2):
        views[0].add_message((3, number), 1000, now_ms=0)
    views[1].update_mark_delete_position((3, 1), now_ms=0)
    registry = Registry()
    registry.add_delayed(topics)
    exports = Exports(registry)
    topic = "persistent://public/default/orders-partition-3"
    shared = [("namespace", "public/default")]
    found = exports.prometheus()
    counts = {
        name: found[
            "pulsar_subscription_delayed" + str([*shared, ("subscription", name), ("topic", topic)])
        ]
        for name in ("s1", "s2")
    }
    assert counts == {"s1": 2.0, "s2": 1.0}
    size = "pulsar_delayed_message_index_size_bytes" + str([*shared, ("topic", topic)])
    assert found[size] == views[0].topic_buffer_memory_bytes > 0
    unit, points = exports.opentelemetry()["pulsar.broker.topic.subscription.delayed.entry.count"]
    assert unit == "{entry}"
    assert points == {
        (
            ("pulsar.domain", "persistent"),
            ("pulsar.tenant", "public"),
            ("pulsar.namespace", "public/default"),
            ("pulsar.topic", TOPIC),
            ("pulsar.partition.index", "3"),
        ): 3
    }
    for view in views:
        view.close(now_ms=0)
    assert exports.prometheus()[size] > 0  # the idle topic's messages are kept
    topics.expire(now_ms=9)
    assert exports.prometheus() == {}


@pytest.mark.parametrize(
    ("library", "use"),
    [
        ("opentelemetry", "otel.export(Registry())"),
        ("prometheus_client", "PrometheusCollector(Registry())"),
    ],
)
def test_an_absent_library_is_named(library: str, use: str) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None\n"
        "from pulsar_ml.metrics import PrometheusCollector, Registry, otel\n"
        f"{use}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "is not installed: pip install 'pulsar_ml[metrics]'" in done.stderr.splitlines()[-1]


def test_a_period_without_length_is_refused() -> None:
    with pytest.raises(UsageError, match="should be above 0"):
        PrometheusCollector(Registry(), period_ms=0)
