"""Reports of a run: content, order and formats; no text of a run is ever markup."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pulsar_ml.campaign.plan.rounds import Arm, Round, Share
from pulsar_ml.campaign.shrink.shrunk import SMALLER, ShrinkState, Shrunk, Size, digest_of
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.report.findings import MOST_POINTS, Curve, Rate, gather
from pulsar_ml.report.html import style_of
from pulsar_ml.terminal.command_line import program
from tests.engine.programs.build_programs import program_of, programs
from tests.report.kit import (
    BUILD_ID,
    HOSTILE,
    engine_run,
    failure_of,
    module_path,
    of_failure,
    page_data,
    row,
    violation,
    write_run,
)
from tests.report.reading import Reader, page_of, report

# Content ------------------------------------------------------------------------------------------


def test_the_verdict_and_the_risk_come_first(tmp_path: Path) -> None:
    clean = write_run(tmp_path / "clean", [row(seed) for seed in range(30)])
    text = Reader(page_of(clean)).text
    assert "No violation in 30 trials (30 exercised, 0 idle) with 3,000 executions" in text
    assert "rarer than 1 in 1,000" in text
    assert text.index("rarer than") < text.index("Coverage") < text.index("The run")


@pytest.mark.parametrize(
    ("rows", "facts", "code"),
    [
        ([row(0)], {}, 0),
        ([row(0, found=[violation("I1", "x")])], {}, 1),
        ([row(0, verdict="nothing_exercised")], {}, 3),
        ([row(0)], {"status": "failed", "problem": "an executor died"}, 4),
        ([row(0)], {"status": "interrupted"}, 130),
    ],
)
def test_the_exit_code_is_the_run_s(
    tmp_path: Path, rows: list[dict[str, Any]], facts: dict[str, str], code: int
) -> None:
    run = write_run(tmp_path / "run", rows, **facts)
    for kind in ("html", "sarif", "junit", "markdown", "json"):
        assert report(run, "--format", kind).exit_code == code
    if "problem" in facts:
        assert "an executor died" in (run / "report.html").read_text()


def test_a_violation_shows_the_log_of_its_executor_and_those_without_a_row_count(
    tmp_path: Path,
) -> None:
    found: dict[str, Any] = violation("I1", "the count is 3")
    rows = [row(0, found=[{**found, "executor": "7", "log": "/var/app-1/7/stderr"}])]
    rows += [
        row(5, found=[{**found, "unlisted": 4}]),
        row(6, found=[{**found, "replay": "", "unlisted": 2}]),
    ]
    run = write_run(tmp_path / "run", rows, status="stopped")
    ((group),) = page_data(page_of(run))
    assert (group["count"], [member[0] for member in group["members"]]) == (9, ["0", "5", "6"])
    assert [member[3] for member in group["members"]] == ["/var/app-1/7/stderr", "", ""]
    done = report(run, "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["violations"]) == (1, 9)


def test_failures_are_made_again_and_drawn(tmp_path: Path) -> None:
    page = page_of(engine_run(tmp_path / "run"), "--module", module_path())
    data = {group["invariant"]: group for group in page_data(page)}
    assert all(group["drawing"]["steps"] for group in data.values())
    race = data["data race"]
    assert race["count"] == 2
    assert race["note"] == "the failure was made again, step by step"
    assert [member[0] for member in race["members"]] == ["0", "3"]
    assert "races.h" in race["lanes"]
    # The curve of continuations that fail has a turning point, which is marked in the steps.
    curves = [group["curve"] for group in data.values()]
    assert all(curve.startswith("continuations that fail") for curve in curves)
    turns = sum("becomes inevitable" in curve for curve in curves)
    assert turns
    assert sum(group["drawing"]["turn"] >= 0 for group in data.values()) == turns
    assert sum("== behind this switch" in group["lanes"] for group in data.values()) == turns
    record = f"{tmp_path}/run/records/{race['signature']}.json"
    assert [command for _, command in race["commands"]] == [
        f"{program()} {words}"
        for words in (
            f"replay {record}",
            f"explain {record}",
            f"replay {record} -v",
            f"replay {record} --gdb",
            f"report {record}",
        )
    ]
    assert any("thread" in sentence for sentence in race["why"])
    marks = {step[4] for step in race["drawing"]["steps"]}
    assert {"first", "second"} <= marks
    assert "happens before" in {kind for _, _, kind in race["drawing"]["arrows"]}
    assert race["drawing"]["missing"] == "nothing orders these two"
    assert race["drawing"]["files"][0][0] == "races.h"
    assert any("race_fill" in line for line in race["lines"])


def test_a_module_that_a_record_names_is_not_loaded_unasked(tmp_path: Path) -> None:
    failure = failure_of("race_met")
    found = of_failure(failure)
    found["replay"] = failure.to_json().replace('"module": ""', '"module": "/tmp/strange.so"')
    page = page_of(write_run(tmp_path / "run", [row(0, found=[found])]))
    (group,) = page_data(page)
    assert group["drawing"] is None
    assert group["note"].startswith(
        "of the module /tmp/strange.so, which a report does not load by itself"
    )


def test_another_build_is_said_and_what_was_stored_is_shown(tmp_path: Path) -> None:
    failure = failure_of("race_met")
    found = of_failure(failure)
    found["replay"] = failure.to_json().replace(failure.build_id, "of-yesterday")
    page = page_of(write_run(tmp_path / "run", [row(0, found=[found])]), "--module", module_path())
    (group,) = page_data(page)
    assert group["drawing"] is None
    assert group["note"].startswith("build of-yesterday failed, and this is build")
    assert any("race_fill" in line for line in group["lines"])


def test_only_so_many_failures_are_made_again(tmp_path: Path) -> None:
    page = page_of(engine_run(tmp_path / "run"), "--module", module_path(), "--traces", "1")
    assert [group["drawing"] is None for group in page_data(page)] == [False, True]


def test_a_record_on_real_threads_says_why_there_is_no_drawing(tmp_path: Path) -> None:
    page = page_of(
        write_run(tmp_path / "run", [row(0, found=[violation("I1", "x")], executions=0)])
    )
    (group,) = page_data(page)
    assert group["note"].startswith("real threads")
    assert "settings: size=4" in group["lines"]


def test_a_run_that_still_goes_on_is_reported_so_far(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0)], status="running")
    assert "has not finished" in Reader(page_of(run)).text


# The page -----------------------------------------------------------------------------------------


def test_a_page_needs_nothing_else(tmp_path: Path) -> None:
    page = page_of(engine_run(tmp_path / "run"), "--module", module_path())
    assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#)[\w/.:]", page)
    metas = [attributes for tag, attributes in Reader(page).tags if tag == "meta"]
    assert any(
        (meta.get("content") or "").startswith("default-src 'none'; style-src 'sha256-")
        for meta in metas
    )


def test_what_a_run_says_is_never_markup(tmp_path: Path) -> None:
    found = [violation(HOSTILE, HOSTILE)]
    rows = [row(0, found=found, suite=HOSTILE, host=HOSTILE, strategy=HOSTILE, exhausted=HOSTILE)]
    facts = dict.fromkeys(("run_id", "problem", "host", "started_at", "build_id"), HOSTILE)
    run = write_run(
        tmp_path / "run", rows, **facts, warnings=[HOSTILE], failures=[{HOSTILE: HOSTILE}],
        versions={HOSTILE: HOSTILE}, plan={HOSTILE: [HOSTILE]}, runner={"registry": HOSTILE},
    )  # fmt: skip
    page = page_of(run)
    tags = Reader(page).tags
    assert "img" not in {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 2
    (group,) = page_data(page)
    assert group["message"] == HOSTILE
    texts = " ".join(command for _, command in group["commands"])
    assert HOSTILE not in texts, "nobody pastes what a run says into a shell"
    markdown = report(run, "--format", "markdown").stdout
    assert not re.search(r"(?<!\\)<", markdown)
    assert ElementTree.fromstring(report(run, "--format", "junit").stdout).tag == "testsuites"
    for kind in ("json", "sarif"):
        assert json.loads(report(run, "--format", kind).stdout)


COLOURS = re.compile(r"--([\w-]+): (#[0-9a-f]{6})")


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1, 2], ids=["light", "dark", "print"])
@pytest.mark.parametrize("text", ["fg", "muted", "link", "bad", "stale", "good", "arrow"])
def test_every_colour_of_text_can_be_read(theme: int, text: str) -> None:
    themes = [
        dict(COLOURS.findall(part)) for part in style_of("colours", "page").split(":root")[1:]
    ]
    assert len(themes) == 3
    colours = themes[theme]
    for behind in ("bg", "soft", "bad-soft"):
        assert contrast(colours[text], colours[behind]) >= 4.5, (text, behind)


def test_contrast_is_measured_right() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") < 4.5


# Many rows ----------------------------------------------------------------------------------------


def test_a_curve_of_any_length_is_a_few_points() -> None:
    from numpy import array, full

    curve = Curve()
    for number in range(2_000):
        curve.add(full(1_000, 100), full(1_000, 1) if number < 10 else array([0] * 1_000))
    assert len(curve.points) <= MOST_POINTS
    assert curve.points[-1] == (200_000_000, 10_000)
    assert curve.points == sorted(curve.points)
    assert curve.recent_rate() == 0


def test_a_rate_of_any_length_is_a_few_points() -> None:
    from numpy import arange, full

    rate = Rate()
    for day in range(3):
        rate.add(arange(day * 86_400, (day + 1) * 86_400), full(86_400, 7))
    points = rate.points()
    assert len(points) <= MOST_POINTS
    assert points[0][0] == 0
    assert all(per_second == pytest.approx(7) for _, per_second in points[1:-1])


def test_signatures_and_violations_beyond_the_limits_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsar_ml.report.findings.MOST_GROUPS", 5)
    monkeypatch.setattr("pulsar_ml.report.findings.MOST_MEMBERS", 3)
    rows = [row(seed, found=[violation("I1", letter)]) for seed, letter in enumerate("abcdefg")]
    page = page_of(write_run(tmp_path / "run", rows))
    assert len(page_data(page)) == 5
    text = Reader(page).text
    assert "7 violations with 5 signatures" in text
    assert "2 violations beyond the page's limit of signatures" in text
    assert "3 violations are listed one by one" in text


# Output files -------------------------------------------------------------------------------------


def test_a_page_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    target = tmp_path / "page.html"
    target.write_text("before")

    def full_disk(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full_disk)
    done = report(run, "-o", str(target))
    assert done.exit_code == 4
    assert "No space left on device" in done.output
    assert target.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["page.html", "run"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda run: run / "nothing", "is not a directory"),
        (lambda run: run / "records", "has no run.json"),
    ],
)
def test_what_is_no_run_is_refused(
    tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    done = report(make(write_run(tmp_path / "run", [row(0)])))
    assert done.exit_code == 2
    assert message in done.output


def test_findings_of_a_run_are_those_of_its_rows(tmp_path: Path) -> None:
    from pulsar_ml.campaign.store.read_run import open_run

    found = gather(open_run(write_run(tmp_path / "run", [row(seed) for seed in range(9)])))
    assert found.summary.trials == 9
    assert found.run.facts["build_id"] == BUILD_ID
    assert found.yields["controlled", "c11", "portfolio"].executions == 900


# Rounds -------------------------------------------------------------------------------------------


def run_in_rounds(directory: Path) -> Path:
    """A run of two rounds; an arm with a hostile name has one trial in each, another arm two."""
    rows = [
        row(
            number, chunk_id=number, suite=HOSTILE if number % 3 == 0 else "made_up", strategy="pct"
        )
        for number in range(6)
    ]
    rows[4]["violations"] = [violation("I1", "the count is 3")]
    run = write_run(directory, rows, rounds={"rounds": 2, "floor": 0.2, "strategies": ["pct"]})
    (run / "rounds").mkdir()
    for number in range(2):
        part = Share(Arm("made_up", "pct"), 2 * number, 2 * number + 2)
        text = json.dumps(Round(3 * number, 2, (part,)).to_data())
        (run / "rounds" / f"round-0000{number}.json").write_text(text)
    return run


def test_a_run_in_rounds_says_where_the_trials_went(tmp_path: Path) -> None:
    page = page_of(run_in_rounds(tmp_path / "run"))
    assert "Trials by round" in page and HOSTILE not in page
    text = Reader(page).text
    assert re.search(r"made_up pct\s*2\s*2\s*1\s*1\s*37\.0", text), text[:3000]
    data = json.loads(report(tmp_path / "run", "--format", "json").stdout)
    arms = [{arm["suite"]: arm["trials"] for arm in each["arms"]} for each in data["rounds"]]
    assert arms == [{"made_up": 2, HOSTILE: 1}] * 2
    page = page_of(write_run(tmp_path / "plain", [row(1)]))
    assert "Trials by round" not in page


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "rounds" / "round-00001.json").write_text("{"), "round-00001.json"),
        (lambda run: (run / "rounds" / "round-00000.json").unlink(), "lacks a round before"),
        (
            lambda run: (run / "rounds" / "round-00001.json").write_text('{"version": 9}'),
            "has version 9",
        ),
    ],
)
def test_a_damaged_round_is_one_sentence(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    run = run_in_rounds(tmp_path / "run")
    damage(run)
    done = report(run)
    assert done.exit_code == 2 and message in done.output and not (run / "report.html").exists()


# Smaller failures ---------------------------------------------------------------------------------


def test_the_report_shows_the_smaller_failure(tmp_path: Path) -> None:
    found = explore(
        programs().SUBJECTS["race_met"], program_of("race_met"), executions=20_000, seed=11
    ).failure
    assert found is not None
    run = write_run(tmp_path / "run", [row(0, found=[of_failure(found)])])
    (signature,) = [path.stem for path in (run / "records").iterdir()]
    small = dataclasses.replace(failure_of("race_met"), message="smaller")
    shrunk = Shrunk(SMALLER, "", small.to_json(), Size(2, 9, 3, 50), Size(2, 2, 1, 12))
    store = RunStore.reopen(run)
    store.write_shrunk(signature, ShrinkState(digest_of(found.to_json()), 100, shrunk))

    (group,) = page_data(page_of(run, "--module", module_path()))
    assert (
        group["lines"][0]
        == "shrunk after the run: 9 operations to 2, 3 decisions to 1, 50 steps to 12"
    )
    assert f"shrunk/{signature}.json" in group["commands"][0][1]
    data = json.loads(report(run, "--format", "json").stdout)
    assert data["shrunk"][signature]["after"]["steps"] == 12

    store.write_shrunk(signature, ShrinkState(digest_of("another record"), 100, shrunk))
    (group,) = page_data(page_of(run, "--module", module_path()))
    assert f"records/{signature}.json" in group["commands"][0][1], (
        "of another record it does not count"
    )

    (run / "shrunk" / f"{signature}.state.json").write_text("{")
    done = report(run)
    assert done.exit_code == 2 and "is not JSON" in done.output
