"""The history of a project: runs side by side, in the page, in Markdown and in JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.report.run_history import interval
from tests.report.kit import HOSTILE, row, violation, write_run
from tests.report.reading import Reader, page_of, report

ONE, TWO = (violation(name, "x")["signature"] for name in ("I1", "I2"))


def made_run(
    folder: Path, day: int, found: Sequence[str], *, seeds: int = 10, suite: str = "made_up"
) -> Path:
    """A run of one day; the trials of the first seeds have one of these violations each."""
    rows = [
        row(
            seed,
            suite=suite,
            found=[violation(found[seed], "x", suite=suite)] if seed < len(found) else [],
        )
        for seed in range(seeds)
    ]
    facts: dict[str, Any] = {"run_id": f"run{day}", "started_at": f"2025-01-0{day}T00:00:00+00:00"}
    return write_run(folder / f"run{day}", rows, **facts)


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """The fourth of five runs. The first two have I1, the third idles, the fourth has I2."""
    made_run(tmp_path, 1, ["I1"])
    made_run(tmp_path, 2, ["I1", "I1", "I2"])
    made_run(tmp_path, 3, [], suite="other")
    made_run(tmp_path, 5, ["I1"])
    return made_run(tmp_path, 4, ["I2"], seeds=20)


def history_of(run: Path, *paths: Path) -> dict[str, Any]:
    words = [word for path in paths for word in ("--history", str(path))]
    content = json.loads(report(run, "--format", "json", *words).stdout)
    history: dict[str, Any] = content["history"]
    return history


def test_runs_stand_in_the_order_of_their_start(last: Path, tmp_path: Path) -> None:
    history = history_of(last, tmp_path)
    assert [one["run_id"] for one in history["runs"]] == ["run1", "run2", "run3", "run4"]
    assert [(one["new"], one["known"], one["gone"]) for one in history["runs"]] == [
        (1, 0, 0), (1, 1, 0), (0, 0, 0), (0, 1, 0),
    ]  # fmt: skip
    assert "Left out: 1 later run." in history["sentences"]
    two = history["runs"][1]
    assert (two["failing_per_thousand"], two["trials"]) == (300, 10)
    assert two["low"] < 300 < two["high"]
    assert two["executions"] == 1000 and two["classes"] == sum(40 - seed for seed in range(10))


def test_signatures_are_new_known_or_gone(last: Path, tmp_path: Path) -> None:
    fates = {one["signature"]: one for one in history_of(last, tmp_path)["signatures"]}
    assert {name: one["status"] for name, one in fates.items()} == {ONE: "gone", TWO: "known"}
    assert fates[ONE]["first_run"] == "run1" and fates[ONE]["runs"] == 2
    # 3 of 20 trials before; 20 trials miss such a failure in 0.85 to the power of 20 of all cases.
    assert fates[ONE]["chance_missed"] == pytest.approx(0.85**20)
    assert fates[TWO]["before_per_thousand"] == 50 and fates[TWO]["now_per_thousand"] == 50
    alone = {one["signature"]: one for one in history_of(last, tmp_path / "run1")["signatures"]}
    assert {name: one["status"] for name, one in alone.items()} == {ONE: "gone", TWO: "new"}
    third = history_of(tmp_path / "run3", tmp_path)["signatures"]
    assert {one["status"] for one in third} == {"not run"}, (
        "another suite ran, which proves nothing"
    )


def test_the_page_and_markdown_have_the_history(last: Path, tmp_path: Path) -> None:
    text = page_of(last, "--history", str(tmp_path))
    page = Reader(text)
    assert "gone" in page.text and "Failing of 1,000" in page.text
    assert text.count('class="chart"') >= 2, "rates and classes of four runs"
    few = page_of(last, "--history", str(tmp_path / "run1"))
    assert '<h2 id="run-history">' in few and "failing of 1,000 trials" not in few
    assert "run-history" not in page_of(last)
    done = report(last, "--format", "markdown", "--history", str(tmp_path))
    assert done.exit_code == 1
    assert f"| {ONE} | gone | made\\_up | I1 | 2 | 3.88% |" in done.stdout


def test_texts_of_other_runs_are_no_markup(tmp_path: Path) -> None:
    evil = [row(0, found=[violation(HOSTILE, HOSTILE)])]
    facts = {"run_id": HOSTILE, "build_id": HOSTILE, "started_at": HOSTILE}
    write_run(tmp_path / "evil", evil, **facts)
    run = made_run(tmp_path, 2, [])
    text = page_of(run, "--history", str(tmp_path))
    tags = [name for name, _ in Reader(text).tags]
    assert "img" not in tags and tags.count("script") == 2


@pytest.mark.parametrize(
    ("count", "trials", "low", "high"),
    [(10, 100, 0.0552, 0.1744), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (0, 0, 0.0, 1.0)],
)
def test_intervals_are_those_of_wilson(count: int, trials: int, low: float, high: float) -> None:
    assert interval(count, trials) == pytest.approx((low, high), abs=1e-4)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    run = made_run(tmp_path, 1, [])
    (tmp_path / "empty").mkdir()
    for name, words in (("empty", "no results directories"), ("none", "is not a directory")):
        done = report(run, "--history", str(tmp_path / name))
        assert done.exit_code == 2 and words in done.stderr


def test_runs_of_one_second_do_not_put_the_reported_one_first(tmp_path: Path) -> None:
    facts = {"started_at": "2025-01-01T00:00:00+00:00"}
    for name in "abc":
        write_run(tmp_path / name, [row(0)], **{**facts, "run_id": name})
    history = history_of(tmp_path / "b", tmp_path)
    assert [one["run_id"] for one in history["runs"]] == ["a", "c", "b"]
