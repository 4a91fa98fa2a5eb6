"""Known failures: their file, its dates, and tests that fail only for what is new."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pulsar_ml.campaign.local.failures import read_failure
from pulsar_ml.errors import BadRecordError
from pulsar_ml.exit_codes import CLEAN, USAGE, VIOLATION
from pulsar_ml.harness.causes.hints import Hints
from pulsar_ml.harness.causes.hints_file import hints_path, write_hints
from pulsar_ml.harness.testing.known import (
    EXPIRED,
    KNOWN,
    NEW,
    Baseline,
    Entry,
    read_baseline,
    read_known,
)
from tests.commands import Called, call
from tests.functions.plugin.test_collect import collected
from tests.functions.test_command import RACE

DAY = date(2026, 3, 1)


def known_file(path: Path, signature: str, until: str = "9999-12-31") -> Path:
    path.write_text(f'[[known]]\nsignature = "{signature}"\nreason = "old"\nuntil = {until}\n')
    return path


def test_an_entry_holds_up_to_its_day(tmp_path: Path) -> None:
    file = known_file(tmp_path / "known.toml", "a" * 12, "2026-03-01")
    for day, status in ((DAY, KNOWN), (date(2026, 2, 1), KNOWN), (date(2026, 3, 2), EXPIRED)):
        baseline = read_baseline([file], day)
        assert baseline.status("a" * 12) == status
        assert baseline.is_known("a" * 12) == (status == KNOWN)
        assert baseline.status("b" * 12) == NEW
    assert baseline.note("a" * 12) == "new, for its entry in known.toml expired on 2026-03-01: old"
    assert baseline.sentence(["a" * 12]) == (
        "baseline: 0 new, 1 expired, so new (aaaaaaaaaaaa on 2026-03-01), 0 known"
    )
    assert read_baseline([file], DAY).sentence(["b" * 12, "a" * 12]) == (
        "baseline: 1 new (bbbbbbbbbbbb), 1 known (aaaaaaaaaaaa)"
    )


def test_a_file_that_expires_counts_more_than_a_folder(tmp_path: Path) -> None:
    file = known_file(tmp_path / "known.toml", "a" * 12, "2026-02-01")
    later = known_file(tmp_path / "later.toml", "a" * 12, "2027-02-01")
    for paths in ([file, tmp_path, later], [later, tmp_path, file]):
        found = read_baseline(paths, DAY, lambda folder: [Entry("a" * 12, "run x")])
        assert found.status("a" * 12) == EXPIRED
    assert Baseline(DAY, {"a" * 12: Entry("a" * 12, "run x")}).note("a" * 12) == "known from run x"


def test_many_signatures_are_counted_and_not_all_named() -> None:
    assert Baseline(DAY).sentence([f"{number:012x}" for number in range(12)]).count(",") == 10
    assert " and 2 more)" in Baseline(DAY).sentence([f"{number:012x}" for number in range(12)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[known]\n", "is no TOML file"),
        ("", "known is missing"),
        (
            '[[known]]\nsignature = "0123456789ab"\nreason = "y"\n',
            "until is missing; it should be a date without quotes, as 2027-03-01",
        ),
        ('[[known]]\nsignature = "x"\nreason = "y"\nuntil = 2027-01-01\n', "12 hexadecimal"),
        ('[[known]]\nsignature = "0123456789ab"\nreason = " "\nuntil = 2027-01-01\n', "say why"),
        ('[[known]]\nsignature = "0123456789ab"\nreason = "y"\nuntil = "2027-01-01"\n', "quotes"),
        (
            '[[known]]\nsignature = "0123456789ab"\nreason = "y"\nuntil = 2027-01-01T00:00:00\n',
            "it should be a date",
        ),
        ('[[known]]\nsignature = "0123456789ab"\nreasons = "y"\n', "did you mean 'reason'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "known.toml").write_text(text)
    with pytest.raises(BadRecordError, match="known.toml") as error:
        read_known(tmp_path / "known.toml")
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("race")
    (folder / "check_race.c").write_text(RACE)
    return folder


def test_check_fails_only_for_what_is_new(race: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(race)

    def check(*words: str) -> Called:
        return call("check", "check_race.c", "--executions", "300", *words)

    first = check("--json", "--baseline", str(known_file(race / "other.toml", "0" * 12)))
    assert first.code == VIOLATION
    (failed,) = [row for row in json.loads(first.out)["tests"] if row["signature"]]
    signature = failed["signature"]
    assert signature in failed["record"] and failed["known"] == ""

    file = str(known_file(race / "known.toml", signature))
    again = check(
        "--baseline", file, "--sarif", "s.sarif", "--junit", "j.xml", "--markdown", "m.md"
    )
    assert again.code == CLEAN
    assert again.out.rstrip().endswith(
        f"2 clean, 1 with a known failure; baseline: 0 new, 1 known ({signature})"
    )
    assert "data race" in again.out and "is known until 9999-12-31: old" in again.out
    (result,) = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    assert result["suppressions"] == [
        {"kind": "external", "justification": "known until 9999-12-31: old"}
    ]
    assert result["baselineState"] == "unchanged"
    assert len(result["locations"]) == len(result["relatedLocations"]) == 1
    root = ElementTree.parse("j.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "0", "1")
    summary = Path("m.md").read_text()
    assert "thread 0" in summary and "known until 9999\\-12" not in summary
    assert f"| {signature} | known until 9999-12-31: old |" in summary

    # Hints that explain keeps beside the record follow the message.
    record = Path(failed["record"])
    failure = read_failure(record)
    change = "release for the store at write_plain check_race.c:9"
    write_hints(record, failure, Hints((), 1, 1), (), "")
    kept = json.loads(hints_path(record).read_text())
    hint = {"changes": [change], "places": [], "executions": 9, "complete": True}
    hints_path(record).write_text(json.dumps({**kept, "hints": [hint]}))
    check("--sarif", "s.sarif")
    (result,) = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    assert result["message"]["text"].endswith(f". The failure is gone with: {change}")
    hints_path(record).write_text("damaged")
    check("--sarif", "s.sarif")
    (result,) = json.loads(Path("s.sarif").read_text())["runs"][0]["results"]
    assert "gone with" not in result["message"]["text"]

    # The folder of records of an earlier build is a baseline, too, and so it is for a report.
    records = ".pulsar_ml/failures"
    assert check("--baseline", records).code == CLEAN
    for of in (records, str(record)):
        page = call("report", of, "--format", "json", "--baseline", file, "--baseline", records)
        assert page.code == CLEAN, page.err
        assert [one["signature"] for one in json.loads(page.out)["baseline"]] == [signature]
    assert call("report", records, "--format", "json").code == VIOLATION
    expired = check("--baseline", str(known_file(race / "past.toml", signature, "2000-01-01")))
    assert expired.code == VIOLATION
    assert f"1 expired, so new ({signature} on 2000-01-01)" in expired.out.splitlines()[-1]
    missing = check("--baseline", "nothing.toml")
    assert missing.code == USAGE and "nothing.toml does not exist" in missing.err


def test_pytest_fails_only_for_what_is_new(race: Path) -> None:
    said = collected(race)
    assert "1 failed, 2 passed" in said
    record = next((race / ".pulsar_ml" / "failures").glob("*.json"))
    signature = record.stem.rpartition("-")[2]
    known_file(race / "known.toml", signature)
    files = ("--sarif=found.sarif", "--markdown=summary.md")
    said = collected(race, "--baseline", "known.toml", "-n", "2", *files)
    assert "2 passed, 1 xfailed" in said
    assert f"baseline: 0 new, 1 known ({signature})" in said
    assert "); known until 9999-12-31: old" in said
    (result,) = json.loads((race / "found.sarif").read_text())["runs"][0]["results"]
    assert result["suppressions"][0]["justification"] == "known until 9999-12-31: old"
    summary = (race / "summary.md").read_text()
    assert f"| {signature} | known until 9999-12-31: old |" in summary and "thread 0" in summary

    known_file(race / "known.toml", signature, "2000-01-01")
    said = collected(race, "--baseline", "known.toml")
    assert "1 failed, 2 passed" in said and f"1 expired, so new ({signature} on 2000-01-01)" in said
    assert "--baseline: the baseline none.toml does not exist" in collected(
        race, "--baseline", "none.toml"
    )
