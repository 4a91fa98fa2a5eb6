"""The ``simulate`` command and the grid, run like a user runs them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.cli import main
from pulsar_ml.errors import UsageError
from pulsar_ml.simulate import load_workload, simulate
from pulsar_ml.simulate.choices import RELEASES, Choice, advice, candidates, frontier, merged, shown
from pulsar_ml.simulate.grid import grid_advice, is_base, parse_axis, points, run_point, scored
from pulsar_ml.simulate.workload import workload_text

WORKLOAD = """\
name = "small"
seconds = 1
[settings]
managedLedgerCacheSizeMB = 1
[[topics]]
entries_per_second = 200
entry_bytes = 10000
backlog = 500
[[topics.subscriptions]]
count = 2
start = "earliest"
entries_per_second = 400
"""


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(WORKLOAD)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def test_a_file_is_played_under_the_chosen_variants(workload: Path) -> None:
    done = run(workload, "--variant", "lru", "--variant", "central_queue", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [result["variant"] for result in found] == ["lru", "central_queue"]
    assert {result["workload"] for result in found} == {"small"}
    assert len(found[0]["timeline"]["pinned_bytes"]) == 60


def test_the_table_has_a_row_for_each_variant(workload: Path) -> None:
    done = run(workload)
    assert done.exit_code == 0
    for name in (
        "central_queue",
        "pulsar_4_1",
        "pulsar_5_0",
        "pulsar_4_0",
        "stash",
        "lru",
        "s3_fifo",
    ):
        assert name in done.stdout


def test_settings_of_the_command_line_are_on_top(workload: Path) -> None:
    done = run(workload, "--variant", "lru", "--json", "--set", "managedLedgerCacheSizeMB=0")
    assert json.loads(done.stdout)[0]["hits"] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["--variant", "fastest"],
        ["--set", "x"],
        ["--set", "x=1"],
        ["--plot", "all.svg"],
    ],
)
def test_what_is_wrong_ends_with_code_2_and_a_sentence(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert "Error: " in done.stderr and "Traceback" not in done.output


def test_the_list_names_workloads_and_variants() -> None:
    done = run("--list")
    assert done.exit_code == 0 and "fan_out" in done.stdout and "s3_fifo" in done.stdout


def test_a_plot_is_written(workload: Path, tmp_path: Path) -> None:
    target = tmp_path / "small.svg"
    assert run(workload, "--variant", "lru", "--plot", target).exit_code == 0
    assert "<svg" in target.read_text()
    done = run(workload, "--variant", "lru", "--plot", tmp_path / "small.unknown")
    assert done.exit_code == 2 and "unknown" in done.stderr


def test_the_best_of_a_grid_reads_least_and_then_holds_least(workload: Path) -> None:
    axes = dict(
        [
            parse_axis("managedLedgerCacheSizeMB=1,4"),
            parse_axis("managedLedgerCacheEvictionPolicyName=lru"),
        ]
    )
    plays = points(str(workload), workload_text(str(workload)), axes, {}, range(1, 3))
    assert len(plays) == 6  # with those of the base alone
    ranks = scored([(point, run_point(point).to_json()) for point in plays], "storage_entries")
    assert [rank.seeds for rank in ranks] == [2, 2, 2]
    assert ranks[0].objective <= ranks[1].objective


def test_the_table_has_reads_that_joined_another_in_a_column(workload: Path) -> None:
    (figures,) = json.loads(run(workload, "--variant", "central_queue", "--json").stdout)
    assert figures["joined_rate"] > 0.1
    table = run(workload, "--variant", "central_queue").stdout
    assert "joined" in table
    assert f"{figures['hit_rate']:.1%}" in table and f"{figures['joined_rate']:.1%}" in table


def test_settings_that_change_nothing_are_ties_of_one_rank(workload: Path) -> None:
    axes = dict([parse_axis("managedLedgerCacheSizeMB=64,128,1")])
    plays = points(str(workload), workload_text(str(workload)), axes, {}, [1])[1:]
    ranks = scored([(point, run_point(point).to_json()) for point in plays], "storage_entries")
    sizes = [
        [settings["managedLedgerCacheSizeMB"] for settings in (rank.settings, *rank.ties)]
        for rank in ranks
    ]
    assert sizes == [["1"], ["64", "128"]]


@pytest.mark.parametrize("text", ["", "key", "key=", "=1,2"])
def test_an_axis_without_values_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="KEY=VALUE"):
        parse_axis(text)


# Today's settings.


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    path = tmp_path / "broker.conf"
    path.write_text("managedLedgerCacheSizeMB=2\nzookeeperServers=nowhere\n")
    return path


def test_todays_settings_come_first_and_one_sentence_says_what_to_change(
    workload: Path, conf: Path
) -> None:
    found = json.loads(run(workload, "--broker-conf", conf, "--json").stdout)[0]
    today, *others = found["choices"]
    assert today["settings"][0] == "today" and today["gain"] == 0
    assert others == sorted(
        others,
        key=lambda one: (one["figures"]["storage_entries"], one["figures"]["mean_pinned_bytes"]),
    )
    assert found["advice"].startswith(("Set ", "Keep today's settings"))
    table = run(workload, "--broker-conf", conf).stdout
    assert found["advice"] in table and "gain" in table and "joined" in table and "p99 ms" in table


@pytest.mark.parametrize("release", sorted(RELEASES))
def test_candidates_are_settings_that_pulsar_has(workload: Path, release: str) -> None:
    base = {"managedLedgerCacheSizeMB": 2}
    played = load_workload(str(workload))
    today, *others = candidates(played, base, release)
    assert today.name == "today" and len(others) > 3
    for each in others:
        assert "Policy" not in each.name
        changed = [key for key, value in each.settings.items() if today.settings.get(key) != value]
        assert len(changed) == 1 and each.name.startswith(f"{changed[0]}=")


def test_equal_choices_are_one_and_the_frontier_has_no_choice_that_another_beats(
    workload: Path,
) -> None:
    played = load_workload(str(workload))
    results = [simulate(played, each) for each in candidates(played, {}, "4.2")]
    choices = merged(results)
    assert sum(len(choice.names) for choice in choices) == len(results)
    assert len({tuple(shown(choice.result).values()) for choice in choices}) == len(choices)
    best = frontier(choices)
    assert best
    for choice in choices:
        beaten = any(
            other.result.hits >= choice.result.hits
            and other.result.mean_pinned_bytes < choice.result.mean_pinned_bytes
            for other in choices
        )
        assert not (choice in best and beaten)
    assert advice([choices[0]]).startswith("Keep today's settings")


def test_reads_beside_none_are_worse_and_a_little_memory_is_no_reason_to_change(
    workload: Path,
) -> None:
    played = load_workload(str(workload))
    result = simulate(played, candidates(played, {}, "4.2")[0])

    def choice(name: str, entries: int, mean_bytes: float) -> Choice:
        figures = replace(result, storage_entries=entries, mean_pinned_bytes=mean_bytes)
        return Choice((name,), figures)

    today, worse = choice("today", 0, 4e6), choice("a=1", 7, 1e6)
    assert (worse.gain(today), worse.gain_text(today)) == (None, "worse")
    assert today.gain(today) == 0.0
    assert advice([today, worse, choice("b=1", 0, 3.5e6)]).startswith("Keep today's settings")
    assert advice([today, worse, choice("b=1", 0, 1e6)]).startswith("Set b=1: no more entries")


def test_a_frontier_is_drawn(workload: Path, conf: Path, tmp_path: Path) -> None:
    target = tmp_path / "frontier.svg"
    assert run(workload, "--broker-conf", conf, "--plot", target).exit_code == 0
    assert "<svg" in target.read_text()


def test_a_grid_knows_todays_settings_and_advises_a_change(workload: Path) -> None:
    base = {"managedLedgerCacheSizeMB": "1"}
    axes = dict([parse_axis("managedLedgerCacheSizeMB=1,8")])
    plays = points(str(workload), workload_text(str(workload)), axes, base, [1])
    ranks = scored([(point, run_point(point).to_json()) for point in plays], "storage_entries")
    (today,) = [rank for rank in ranks if is_base(rank, base)]
    sentence = grid_advice(ranks, today)
    if ranks[0] is today:
        assert sentence.startswith("Keep")
    else:
        assert "managedLedgerCacheSizeMB=8" in sentence
    assert all(0 <= rank.joined_rate <= 1 for rank in ranks)
