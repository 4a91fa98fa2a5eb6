"""One simulation: a workload under a variant."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from pulsar_ml.simulate.cache import Broker, CachedLedger, seconds
from pulsar_ml.simulate.clock import MILLI, NANOS, VirtualClock
from pulsar_ml.simulate.key_shared import KeySharedSubscription
from pulsar_ml.simulate.result import Result, timeline
from pulsar_ml.simulate.subscription import Subscription
from pulsar_ml.simulate.topic import Topic
from pulsar_ml.simulate.variant import Variant, cache_settings
from pulsar_ml.simulate.workload import Topics, Workload

SAMPLES = 60


def simulate(
    workload: Workload,
    variant: Variant,
    *,
    seed: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Play ``workload`` under ``variant``; equal arguments give an equal result.

    ``seed`` replaces the workload's. ``progress`` is called with the share that is done. Raises UsageError
    for settings that do not fit, AllocationError when native memory runs out.
    """
    seed = workload.seed if seed is None else seed
    clock = VirtualClock()
    broker = Broker(
        cache_settings(workload, variant),
        clock,
        latency=int(workload.storage_read_millis * MILLI),
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
            broker.measures.sample(broker.manager.size)
            if broker.audit is not None:
                broker.audit.look()
            if progress is not None:
                progress(sample / SAMPLES)
        return measured(workload, variant, seed, broker, step)


def start_topic(broker: Broker, settings: Topics, number: int, seed: int) -> None:
    # Own random numbers for each part: a variant that reads in another order sees the same writes.
    topic = Topic(CachedLedger(broker, number), settings, broker.clock, Random(f"{seed}/{number}"))
    part = 0
    for each in settings.subscriptions:
        for _ in range(each.count):
            if each.kind == "ordered":
                random = Random(f"{seed}/{number}/{part}")
                Subscription(str(part), topic, each, broker.clock, random).start()
            else:
                KeySharedSubscription(str(part), topic, each, broker.clock).start()
            part += 1
    topic.start()


def measured(workload: Workload, variant: Variant, seed: int, broker: Broker, step: int) -> Result:
    found = broker.measures
    stats = broker.manager.stats()
    return Result(
        workload=workload.name,
        variant=variant.name,
        seed=seed,
        requested=found.requested,
        hits=found.hits,
        joined=found.joined,
        replayed=found.replayed,
        replay_hits=found.replay_hits,
        storage_reads=found.storage_reads,
        storage_entries=found.storage_entries,
        storage_bytes=found.storage_bytes,
        mean_pinned_bytes=found.pinned_total / max(found.pinned_time, 1),
        max_pinned_bytes=found.max_pinned,
        inserted=stats.inserted_entries,
        evicted=stats.evicted_entries,
        size_passes=stats.evictions,
        eviction_steps=stats.evicted_entries + stats.requeued + stats.dropped,
        audited=broker.audit.left if broker.audit else 0,
        out_of_order=broker.audit.out_of_order if broker.audit else 0,
        timeline=timeline(found, step / NANOS),
    )
