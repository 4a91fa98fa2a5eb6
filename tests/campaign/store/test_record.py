"""Replay records: there and back, and one clear sentence for what is not one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.errors import BadRecordError

RECORD = ReplayRecord(
    suite="entry",
    seed=2**64 - 1,
    threads=4,
    operations=100,
    noise=True,
    settings={"capacity": 3},
    build_id="0123456789ab",
    module="pulsar_ml.operations._native",
    mutant="H01",
    invariant="I1",
    message="the count is 2, expected 1",
    program="0123456789abcdef",
)


@pytest.mark.parametrize(("runs", "version"), [(1, 1), (0, 2), (30, 2)])
def test_older_releases_read_a_record_of_one_run(runs: int, version: int) -> None:
    record = replace(RECORD, runs=runs)
    assert ReplayRecord.from_json(record.to_json()) == record
    assert json.loads(record.to_json())["version"] == version


@given(
    seed=st.integers(0, 2**64 - 1),
    settings=st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)),
    message=st.none() | st.text(),
)
def test_json_brings_a_record_back(seed: Any, settings: Any, message: Any) -> None:
    record = ReplayRecord(
        suite="entry",
        seed=seed,
        threads=1,
        operations=1,
        noise=False,
        settings=settings,
        build_id="",
        module="m",
        message=message,
    )
    assert ReplayRecord.from_json(record.to_json()) == record


def test_equal_records_are_equal_texts_of_one_line() -> None:
    text = RECORD.to_json()
    assert ReplayRecord.from_json(text).to_json() == text
    assert "\n" not in text


def test_every_truncation_is_refused() -> None:
    text = RECORD.to_json()
    for length in range(len(text)):
        with pytest.raises(BadRecordError, match="damaged or truncated"):
            ReplayRecord.from_json(text[:length])


def test_an_older_record_does_not_know_which_call_it_was() -> None:
    content = json.loads(RECORD.to_json())
    del content["thread"], content["call"]
    read = ReplayRecord.from_json(json.dumps(content))
    assert (read.thread, read.call) == (-1, -1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "the replay record is []; it should be a JSON object"),
        ("3", "the replay record is 3; it should be a JSON object"),
        ("null", "the replay record is null; it should be a JSON object"),
        ("{}", 'kind is null; it should be "pulsar_ml replay record"'),
        ('{"kind": "letter"}', 'kind is "letter"; it should be "pulsar_ml replay record"'),
    ],
)
def test_other_json_is_refused(text: Any, message: Any) -> None:
    with pytest.raises(BadRecordError, match=re.escape(message)):
        ReplayRecord.from_json(text)


MAY_BE_MISSING = {"kind", "version", "thread", "call"}


@pytest.mark.parametrize("field", sorted(set(json.loads(RECORD.to_json())) - MAY_BE_MISSING))
def test_a_missing_field_is_named(field: Any) -> None:
    content = json.loads(RECORD.to_json())
    del content[field]
    with pytest.raises(BadRecordError, match=f"{field} is missing"):
        ReplayRecord.from_json(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 3}, "version 3, this release reads up to 2; use a newer"),
        ({"version": "1"}, 'version is "1"; it should be 1'),
        ({"version": None}, "version is null; it should be 1"),
        ({"seed": "7"}, 'seed is "7"; it should be an integer'),
        ({"seed": True}, "seed is true"),
        ({"seed": -1}, "seed is -1; it should be between 0"),
        ({"threads": 0}, "threads is 0; it should be between 1 and 64"),
        ({"operations": 0}, "operations is 0"),
        ({"runs": -1}, "runs is -1; it should be between 0"),
        ({"noise": 1}, "noise is 1; it should be true or false"),
        ({"settings": {"a": "b"}}, "settings.'a'. is .b.; it should be an integer"),
        ({"settings": []}, "settings"),
        ({"suite": None}, "suite is null; it should be a text"),
        ({"mutant": 3}, "mutant is 3; it should be a text or null"),
        ({"colour": "red"}, 'unknown key "colour"'),
    ],
)
def test_damage_is_named(change: Any, message: Any) -> None:
    with pytest.raises(BadRecordError, match=message):
        ReplayRecord.from_json(json.dumps(json.loads(RECORD.to_json()) | change))
