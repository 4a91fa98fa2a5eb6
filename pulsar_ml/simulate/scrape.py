"""A workload from two scrapes of a broker's Prometheus metrics, under Pulsar's names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pulsar_ml.config.reading import plain_text
from pulsar_ml.errors import ConfigError, UsageError
from pulsar_ml.simulate.workload import parse_workload

MESSAGES, BYTES = "pulsar_in_messages_total", "pulsar_in_bytes_total"
BACKLOG = "pulsar_subscription_back_log"
RATE_OUT = "pulsar_subscription_msg_rate_out"
REDELIVERED = "pulsar_subscription_msg_rate_redeliver"
DELAYED = "pulsar_subscription_delayed"
CONSUMERS = "pulsar_subscription_consumers_count"
HITS, MISSES = "pulsar_ml_cache_hits_rate", "pulsar_ml_cache_misses_rate"
NAMES = {MESSAGES, BYTES, BACKLOG, RATE_OUT, REDELIVERED, DELAYED, CONSUMERS, HITS, MISSES}
BACKLOGGED = 1000  # entries; a subscription with more starts at the begin of its backlog
MEAN_DELAY = 10.0  # seconds of a delayed entry: no metric has the delays

Labels = tuple[str, str]  # topic and subscription, "" where the metric has none
Scrape = Mapping[tuple[str, Labels], float]


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscription as the metrics show it, rounded so that similar ones are equal."""

    kind: str
    backlog: int
    rate: float
    redelivered: float
    delayed: int
    consumers: int


@dataclass(slots=True)
class Group:
    """Topics with similar rates, sizes and subscriptions."""

    subscribers: tuple[Subscriber, ...]
    rates: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)


def scraped_workload(files: Sequence[Path], *, seconds: float) -> str:
    """The TOML of a workload whose topics write and read as the broker's did between two scrapes.

    Raises UsageError for another number of files, for a file that is no scrape, and for a broker
    without topics.
    """
    if len(files) != 2:
        raise UsageError(f"--scrape takes two files of one broker, not {len(files)}; name two")
    first, second = (read_scrape(file) for file in files)
    groups = grouped(first, second, seconds)
    if not groups:
        raise UsageError(
            f"{files[1]}: no topic wrote or has a backlog; scrape a broker with "
            "exposeTopicLevelMetricsInPrometheus=true"
        )
    text = "\n".join(lines_of(groups, second)) + "\n"
    parse_workload(text, str(files[1]))
    return text


def read_scrape(file: Path) -> Scrape:
    """The values of the metrics in NAMES, by topic and subscription. Raises UsageError."""
    try:
        from prometheus_client.parser import text_string_to_metric_families
    except ImportError:
        raise UsageError(
            "--scrape needs prometheus_client: pip install 'pulsar_ml[metrics]'"
        ) from None
    found: dict[tuple[str, Labels], float] = {}
    try:
        for family in text_string_to_metric_families(plain_text(str(file))):
            for sample in family.samples:
                if sample.name in NAMES and math.isfinite(sample.value):
                    labels = (sample.labels.get("topic", ""), sample.labels.get("subscription", ""))
                    key = (sample.name, labels)
                    found[key] = found.get(key, 0.0) + max(sample.value, 0.0)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    except (ValueError, KeyError, IndexError) as error:
        raise UsageError(
            f"{file}: not the text of a Prometheus scrape: {str(error)!r:.200}"
        ) from None
    return found


def rounded(value: float) -> float:
    """One significant digit: similar values are equal."""
    if value <= 0:
        return 0.0
    digits = -math.floor(math.log10(value))
    return round(value, digits)


def grouped(first: Scrape, second: Scrape, seconds: float) -> list[Group]:
    """The topics of both scrapes in groups, the busiest first."""
    groups: dict[tuple[object, ...], Group] = {}
    for topic in sorted({labels[0] for _, labels in second if labels[0]}):
        messages = growth(first, second, MESSAGES, topic)
        size = growth(first, second, BYTES, topic) / messages if messages else 1000.0
        subscribers = tuple(sorted(subscribers_of(second, topic), key=repr))
        rate = messages / seconds
        if not rate and not any(each.backlog for each in subscribers):
            continue
        key = (rounded(rate), rounded(size), subscribers)
        group = groups.setdefault(key, Group(subscribers))
        group.rates.append(rate)
        group.sizes.append(size)
    return sorted(groups.values(), key=lambda group: -sum(group.rates))


def growth(first: Scrape, second: Scrape, name: str, topic: str) -> float:
    """The growth of a counter of a topic; its value, when the broker began again in between."""
    before, after = (sample.get((name, (topic, "")), 0.0) for sample in (first, second))
    return after - before if after >= before else after


def subscribers_of(scrape: Scrape, topic: str) -> Iterator[Subscriber]:
    names = sorted({labels[1] for _, labels in scrape if labels[0] == topic and labels[1]})
    for name in names:

        def value(metric: str, name: str = name) -> float:
            return scrape.get((metric, (topic, name)), 0.0)

        rate, redelivered, delayed = value(RATE_OUT), value(REDELIVERED), value(DELAYED)
        backlog = value(BACKLOG)
        yield Subscriber(
            kind="key_shared" if redelivered or delayed else "ordered",
            backlog=int(rounded(backlog)) if backlog > BACKLOGGED else 0,
            rate=rounded(rate) if backlog > BACKLOGGED else 0.0,
            redelivered=min(0.9, rounded(redelivered / rate)) if rate else 0.0,
            delayed=int(rounded(delayed)),
            consumers=max(1, int(value(CONSUMERS))),
        )


def lines_of(groups: Sequence[Group], scrape: Scrape) -> Iterator[str]:
    hits = scrape.get((HITS, ("", "")), 0.0)
    requested = hits + scrape.get((MISSES, ("", "")), 0.0)
    if requested:
        yield f"# The broker's own hit rate at the second scrape: {hits / requested:.1%}."
    yield "# Each message counts as an entry: divide the rates by the messages of a batch."
    yield 'name = "scraped"'
    topics = sum(len(group.rates) for group in groups)
    yield f'summary = "{topics:,} {"topic" if topics == 1 else "topics"} of a broker."'
    for group in groups:
        rate = sum(group.rates) / len(group.rates)
        delayed = max((each.delayed for each in group.subscribers), default=0)
        yield from (
            "",
            "[[topics]]",
            f"count = {len(group.rates)}",
            f"entries_per_second = {rate:.6g}",
            f"entry_bytes = [{min(group.sizes):.0f}, {max(group.sizes):.0f}]",
        )
        if backlog := max((each.backlog for each in group.subscribers), default=0):
            yield f"backlog = {backlog}"
        if delayed and rate:
            yield f"delayed_share = {min(1.0, delayed / (rate * MEAN_DELAY)):.3g}"
            yield f"delay_seconds = [0, {2 * MEAN_DELAY:g}]  # assumed: no metric has the delays"
        for each in dict.fromkeys(group.subscribers):
            yield from ("", "[[topics.subscriptions]]", f"count = {group.subscribers.count(each)}")
            if each.kind == "key_shared":
                yield from (
                    'kind = "key_shared"',
                    f"consumers = {each.consumers}",
                    "slow_consumers = 0",
                    f"redelivered_share = {each.redelivered:g}",
                )
            if each.backlog:
                yield 'start = "earliest"'
            if each.rate:
                yield f"entries_per_second = {each.rate:g}"
