"""Wrong formats are refused in one sentence that names file, key, value and remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulsar_ml.errors import BadRecordError
from pulsar_ml.versioned_json import build, check_keys, check_version, decode, read_object


@dataclass(frozen=True)
class Size:
    width: int
    height: float


@dataclass(frozen=True)
class Box:
    name: str
    size: Size
    tags: tuple[str, ...]
    corner: tuple[int, int]
    counts: Mapping[str, int]
    state: Literal["open", "closed"]
    open_to: str | None = None
    parts: list[Size] | None = None
    sealed: bool = False


BOX = Box("a", Size(1, 2.5), ("x", "y"), (3, 4), {"b": 5}, "open", None, [Size(6, 7.0)], True)
CONTENT = json.loads(json.dumps(asdict(BOX)))


def test_a_dataclass_comes_back() -> None:
    assert build(Box, CONTENT, "box.json") == BOX


def test_fields_with_defaults_may_be_missing_unless_all_are_required() -> None:
    short = {key: value for key, value in CONTENT.items() if key != "sealed"}
    assert build(Box, short, "box.json").sealed is False
    with pytest.raises(BadRecordError, match="^box.json: sealed is missing; it should be true or"):
        build(Box, short, "box.json", optional=frozenset())


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": 3}, "box.json: name is 3; it should be a text"),
    ({"name": None}, "box.json: name is null; it should be a text"),
    ({"sealed": 1}, "box.json: sealed is 1; it should be true or false"),
    ({"size": []}, "box.json: size is []; it should be an object"),
    ({"size": {"width": True, "height": 1}}, "box.json, size,: width is true; it should be an int"),
    ({"size": {"width": 1, "height": "2"}}, 'box.json, size,: height is "2"; it should be a num'),
    ({"size": {"width": 1}}, "box.json, size,: height is missing; it should be a number"),
    ({"tags": "x"}, 'box.json: tags is "x"; it should be a list, each item a text'),
    ({"tags": ["x", 3]}, "box.json: tags[1] is 3; it should be a text"),
    ({"corner": [1]}, "box.json: corner is [1]; it should be a list of 2: an integer, an integer"),
    ({"counts": {"b": 1.5}}, "box.json: counts['b'] is 1.5; it should be an integer"),
    ({"counts": 1}, "box.json: counts is 1; it should be an object, each value an integer"),
    ({"state": "ajar"}, "box.json: state is \"ajar\"; it should be one of 'open', 'closed'"),
    ({"open_to": 1}, "box.json: open_to is 1; it should be a text or null"),
    ({"parts": [1]}, "box.json: parts[0] is 1; it should be an object"),
    ({"sized": 1}, "box.json has an unknown key \"sized\"; did you mean 'size'?"),
    ({"zzz": 1}, 'box.json has an unknown key "zzz"'),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_a_wrong_key_or_value_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRecordError) as refused:
        build(Box, CONTENT | change, "box.json")
    assert str(refused.value).startswith(message)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(BadRecordError) as refused:
        build(Box, CONTENT | {"name": ["x" * 10_000]}, "box.json")
    assert len(str(refused.value)) < 200


def test_other_keys_are_left_out_where_they_may_be_there() -> None:
    assert check_keys({"a": 1, "b": 2}, {"a": int}, "it", others=True) == {"a": 1}
    with pytest.raises(BadRecordError, match="unknown key"):
        check_keys({"a": 1, "b": 2}, {"a": int}, "it")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "it is not JSON, so it is damaged or truncated"),
        pytest.param(
            "[" * 200_000, "it is not JSON, so it is damaged or truncated", id="deeply nested"
        ),
        ("[]", "it is []; it should be a JSON object"),
        ('{"version": 1}', 'it: kind is null; it should be "box"'),
        ('{"kind": "bag", "version": 1}', 'it: kind is "bag"; it should be "box"'),
        ('{"kind": "box"}', "it: version is null; it should be 1 or 2"),
        ('{"kind": "box", "version": "1"}', 'it: version is "1"; it should be 1 or 2'),
        ('{"kind": "box", "version": true}', "it: version is true; it should be 1 or 2"),
        ('{"kind": "box", "version": 0}', "it: version is 0; it should be 1 or 2"),
        ('{"kind": "box", "version": 3}', "it has version 3, this release reads up to 2; use a"),
    ],
)
def test_kind_and_version_are_checked(text: str, message: str) -> None:
    with pytest.raises(BadRecordError) as refused:
        read_object(text, "it", kind="box", versions=(1, 2))
    assert str(refused.value).startswith(message)


def test_kind_and_version_are_not_part_of_the_content() -> None:
    text = '{"kind": "box", "version": 2, "a": 1}'
    assert read_object(text, "it", kind="box", versions=(1, 2)) == {"a": 1}
    check_version(1, "it", (1,))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(CONTENT)), JSON)
def test_any_value_is_taken_or_refused_in_one_sentence(key: str, value: Any) -> None:
    content = decode(json.dumps(CONTENT | {key: value}), "it")
    try:
        build(Box, content, "it")
    except BadRecordError as error:
        assert "\n" not in str(error) and len(str(error)) < 300
