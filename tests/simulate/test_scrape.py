"""A workload from two scrapes of a broker."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.errors import UsageError
from pulsar_ml.simulate.scrape import BACKLOG, scraped_workload
from pulsar_ml.simulate.workload import parse_workload

TOPIC = 'cluster="c",namespace="public/default",topic="persistent://public/default/{}"'


def sample(name: str, topic: str, value: float, subscription: str = "") -> str:
    labels = TOPIC.format(topic) + (f',subscription="{subscription}"' if subscription else "")
    return f"{name}{{{labels}}} {value}"


def scrape(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def written(topic: str, messages: float, size: float) -> list[str]:
    return [
        "# TYPE pulsar_in_messages_total counter",
        sample("pulsar_in_messages_total", topic, messages),
        "# TYPE pulsar_in_bytes_total counter",
        sample("pulsar_in_bytes_total", topic, messages * size),
    ]


@pytest.fixture
def scrapes(tmp_path: Path) -> list[Path]:
    first = scrape(tmp_path, "first", *written("a", 1000, 2000), *written("b", 9000, 500))
    second = scrape(
        tmp_path,
        "second",
        *written("a", 7000, 2000),
        *written("b", 600, 500),  # the broker began again
        *written("c", 0, 0),  # neither writes nor a backlog
        sample(BACKLOG, "a", 5200, "s1"),
        sample("pulsar_subscription_msg_rate_out", "a", 130, "s1"),
        sample(BACKLOG, "a", 3, "s2"),
        sample("pulsar_subscription_delayed", "b", 20, "s1"),
        sample("pulsar_subscription_consumers_count", "b", 4, "s1"),
        'pulsar_ml_cache_hits_rate{cluster="c"} 90',
        'pulsar_ml_cache_misses_rate{cluster="c"} 10',
    )
    return [first, second]


def test_rates_sizes_backlogs_and_delays_are_those_of_the_broker(scrapes: list[Path]) -> None:
    text = scraped_workload(scrapes, seconds=60)
    workload = parse_workload(text, "scraped")
    busy, other = workload.topics
    assert (busy.entries_per_second, busy.entry_bytes) == (100, (2000, 2000))
    assert busy.backlog == 5000
    starts = {each.start: each.entries_per_second for each in busy.subscriptions}
    assert starts == {"earliest": 100, "latest": 0}
    assert other.entries_per_second == 10 and other.delayed_share == pytest.approx(0.2)
    assert [(each.kind, each.consumers) for each in other.subscriptions] == [("key_shared", 4)]
    assert "hit rate at the second scrape: 90.0%" in text


def test_topics_that_are_alike_are_one_group(tmp_path: Path) -> None:
    lines = [written(name, count, 1000) for name, count in (("a", 600), ("b", 610), ("c", 6000))]
    empty = scrape(tmp_path, "first", "")
    second = scrape(tmp_path, "second", *chain.from_iterable(lines))
    workload = parse_workload(scraped_workload([empty, second], seconds=60), "scraped")
    assert [topics.count for topics in workload.topics] == [1, 2]


def test_the_command_prints_a_workload(scrapes: list[Path]) -> None:
    files = [argument for path in scrapes for argument in ("--scrape", str(path))]
    done = CliRunner().invoke(main, ["simulate", *files, "--scrape-seconds", "60"])
    assert done.exit_code == 0 and len(parse_workload(done.stdout, "printed").topics) == 2


@pytest.mark.parametrize(
    ("contents", "complaint"),
    [
        (["", ""], "no topic wrote"),
        ([""], "two files"),
        (["", "pulsar_in_messages_total{topic= 5"], "not the text of a Prometheus scrape"),
    ],
)
def test_wrong_scrapes_are_refused(tmp_path: Path, contents: list[str], complaint: str) -> None:
    files = [scrape(tmp_path, str(number), text) for number, text in enumerate(contents)]
    with pytest.raises(UsageError, match=complaint):
        scraped_workload(files, seconds=60)
    with pytest.raises(UsageError, match="nowhere"):
        scraped_workload([Path("/nowhere"), Path("/nowhere")], seconds=60)
