"""Runs one simulation: a workload under a variant."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pulsar_ml.simulate.cache import Broker, CachedLedger, seconds
from pulsar_ml.simulate.clock import MILLI, NANOS, VirtualClock
from pulsar_ml.simulate.result import Result, timeline
from pulsar_ml.simulate.subscriptions.key_shared import KeySharedSubscription
from pulsar_ml.simulate.subscriptions.ordered import OrderedSubscription
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.variant import Variant, cache_settings
from pulsar_ml.simulate.workload import TopicGroup, Workload

SAMPLES = 60


def simulate(
    workload: Workload,
    variant: Variant,
    *,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulates ``workload`` under ``variant``; equal arguments give equal results.

    ``seed`` replaces the workload's seed. ``progress`` is called with the simulated share of the
    time. Raises UsageError for invalid settings, and AllocationError when native memory runs out.
    """
    seed = workload.seed if seed is None else seed
    clock = VirtualClock()
    broker = Broker(
        cache_settings(workload, variant),
        clock,
        latency=workload.storage_read_millis,
        random=Random(f"{seed}/storage"),
        dispatch_nanos=int(workload.dispatch_millis * MILLI),
        audit=workload.audit_order,
    )
    with broker.manager:
        number = 0
        for topics in workload.topics:
            for _ in range(topics.count):
                start_topic(broker, topics, number, seed)
                number += 1
        step = seconds(workload.seconds) // SAMPLES
        for sample in range(1, SAMPLES + 1):
            clock.run_until(sample * step)
            broker.counters.sample(broker.manager.size)
            if broker.audit is not None:
                broker.audit.update()
            if progress is not None:
                progress(sample / SAMPLES)
        return result_of(workload, variant, seed, broker, step)


def start_topic(broker: Broker, settings: TopicGroup, number: int, seed: int) -> None:
    # Separate random numbers for each topic and subscription, so that all variants see equal
    # writes.
    topic = Topic(
        CachedLedger(broker, number),
        settings,
        broker.clock,
        Random(f"{seed}/{number}"),
        Random(f"{seed}/{number}/delays"),
    )
    index = 0
    for group in settings.subscriptions:
        for _ in range(group.count):
            if group.kind == "ordered":
                random = Random(f"{seed}/{number}/{index}")
                OrderedSubscription(str(index), topic, group, broker.clock, random).start()
            else:
                random = Random(f"{seed}/{number}/{index}")
                KeySharedSubscription(str(index), topic, group, broker.clock, random).start()
            index += 1
    topic.start()


def result_of(workload: Workload, variant: Variant, seed: int, broker: Broker, step: int) -> Result:
    counters = broker.counters
    stats = broker.manager.stats()
    return Result(
        workload=workload.name,
        variant=variant.name,
        seed=seed,
        requested=counters.requested,
        hits=counters.hits,
        joined=counters.joined,
        replayed=counters.replayed,
        replay_hits=counters.replay_hits,
        redelivered=counters.redelivered,
        delayed=counters.delayed,
        max_ack_state_bytes=counters.max_ack_state_bytes,
        max_delayed_bytes=counters.max_delayed_bytes,
        read_millis=counters.durations.millis(),
        storage_reads=counters.storage_reads,
        storage_entries=counters.storage_entries,
        storage_bytes=counters.storage_bytes,
        mean_pinned_bytes=counters.pinned_total / max(counters.pinned_time, 1),
        max_pinned_bytes=counters.max_pinned,
        inserted=stats.inserted_entries,
        evicted=stats.evicted_entries,
        size_passes=stats.evictions,
        eviction_steps=stats.evicted_entries + stats.requeued + stats.dropped,
        audited=broker.audit.removed if broker.audit else 0,
        out_of_order=broker.audit.out_of_order if broker.audit else 0,
        timeline=timeline(counters, step / NANOS),
    )
