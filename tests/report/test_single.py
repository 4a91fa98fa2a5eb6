"""Reports about records without a run: one failure, a folder of failures, records of strangers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pulsar_ml.cli import COMMANDS
from pulsar_ml.harness.causes.changes import Order
from pulsar_ml.harness.causes.hints import Hint, Hints
from pulsar_ml.harness.causes.hints_file import hints_path, write_hints
from pulsar_ml.harness.testing.records import keep_failure
from tests.report.kit import (
    HOSTILE,
    failure_of,
    module_path,
    page_data,
    violation,
)
from tests.report.reading import Reader, report


def kept(folder: Path, *names: str) -> list[Path]:
    """The records of test programs, as a test run leaves them."""
    return [keep_failure(failure_of(name), folder) for name in names]


def test_the_page_of_a_failure_stands_beside_it(tmp_path: Path) -> None:
    (record,) = kept(tmp_path, "race_met")
    done = report(record, "--module", module_path())
    assert done.exit_code == 1
    page = record.with_suffix(".html").read_text()
    (group,) = page_data(page)
    assert group["drawing"]["missing"] == "nothing orders these two"
    assert group["sentence"] == (
        "Threads 0 and 1 race on one memory location: write at races.h:3, write at races.h:3"
    )
    assert f'<h1 id="headline">{group["sentence"]}</h1>' in page
    assert dict(group["environment"])["memory model"] == "c11"
    assert [thread for thread, _ in group["program"]][-2:] == ["thread 0", "thread 1"]
    assert "Parquet" not in Reader(page).text and "Coverage" not in Reader(page).text


def test_a_folder_of_failures_is_one_page(tmp_path: Path) -> None:
    kept(tmp_path, "race_met", "message_relaxed")
    below = tmp_path / ".pulsar_ml" / "failures"
    (below / "other.json").write_text('{"another": "program"}')
    for folder, page in ((tmp_path, tmp_path), (below, below)):
        assert report(folder, "--module", module_path()).exit_code == 1
        data = page_data((page / "report.html").read_text())
        assert sorted(group["suite"] for group in data) == ["message_relaxed", "race_met"]


def test_equal_failures_are_one_signature(tmp_path: Path) -> None:
    (first,) = kept(tmp_path, "race_met")
    second = first.with_name("second.json")
    second.write_text(replace(failure_of("race_met"), seed=99).to_json())
    report(tmp_path, "--module", module_path())
    (group,) = page_data((tmp_path / "report.html").read_text())
    assert (group["count"], group["seed"]) == (2, str(failure_of("race_met").seed))
    assert first.name in group["commands"][0][1]


def test_a_record_of_real_threads_has_a_page_that_goes_on_with_a_hunt(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text(str(violation("I1", "the count is 3")["replay"]))
    assert report(record).exit_code == 1
    (group,) = page_data(record.with_suffix(".html").read_text())
    assert group["sentence"] == "I1: the count is 3"
    commands = [command.split(" ") for _, command in group["commands"]]
    assert {"replay", "hunt", "report"} <= {word for command in commands for word in command}


def test_what_a_record_names_is_built_or_loaded_only_when_trusted(tmp_path: Path) -> None:
    failure = failure_of("race_met")
    strange = tmp_path / "strange.so"
    for name, record in (
        ("module", replace(failure, module=str(strange))),
        ("recipe", replace(failure, recipe='{"kind": "pulsar_ml recipe"}')),
    ):
        path = tmp_path / f"{name}.json"
        path.write_text(record.to_json())
        report(path)
        (group,) = page_data(path.with_suffix(".html").read_text())
        assert "which a report does not" in group["note"]
        report(path, "--trust")
        (group,) = page_data(path.with_suffix(".html").read_text())
        assert group["note"].startswith("it could not be reproduced: ")
        assert all(command.endswith(" --trust") for _, command in group["commands"])


def test_hints_that_explain_left_are_on_the_page_of_their_failure_alone(tmp_path: Path) -> None:
    (record,) = kept(tmp_path, "race_met")
    failure = failure_of("race_met")
    order = Order((1,), "push queue.h:14", "store", "relaxed", "release")
    found = Hints((Hint((order,), 1200, False),), 3, 1)
    write_hints(record, failure, found, (), "")
    report(record)
    (group,) = page_data(record.with_suffix(".html").read_text())
    assert group["hints"] == [
        "release for the store at push queue.h:14 (relaxed now): none of 1,200 executions fails"
    ]
    write_hints(record, replace(failure, seed=99), found, (), "")
    report(record)
    (group,) = page_data(record.with_suffix(".html").read_text())
    assert group["hints"] == []
    hints_path(record).write_text("{")
    assert report(record).exit_code == 1, "damaged hints are none"


def test_each_command_on_a_page_is_one_that_exists(tmp_path: Path) -> None:
    kept(tmp_path, "race_met")
    (tmp_path / ".pulsar_ml" / "failures" / "threads.json").write_text(
        str(violation("I1", "x")["replay"])
    )
    report(tmp_path)
    for group in page_data((tmp_path / "report.html").read_text()):
        for _, command in group["commands"]:
            words = command.split(" ")
            assert any(word in COMMANDS for word in words), command


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind_of_record": "pulsar_ml failure"}', "\0"])
def test_a_damaged_record_is_one_sentence(tmp_path: Path, text: str) -> None:
    record = tmp_path / "record.json"
    record.write_text(text)
    done = report(record)
    assert done.exit_code == 2 and str(record) in done.output
    assert not record.with_suffix(".html").exists()


def test_texts_of_a_record_are_never_markup(tmp_path: Path) -> None:
    failure = replace(failure_of("race_met"), message=HOSTILE, rule=HOSTILE, build_id=HOSTILE)
    record = tmp_path / "record.json"
    record.write_text(failure.to_json())
    report(record)
    page = record.with_suffix(".html").read_text()
    assert "<img" not in page and "taken" in page
    tags = {tag for tag, _ in Reader(page).tags}
    assert "img" not in tags


def test_other_formats_of_a_failure(tmp_path: Path) -> None:
    (record,) = kept(tmp_path, "race_met")
    done = report(record, "--format", "json")
    assert (done.exit_code, json.loads(done.stdout)["violations"]) == (1, 1)
    assert "races.h" in report(record, "--format", "sarif").stdout
