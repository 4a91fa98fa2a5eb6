"""Damages inputs, the same way in each run, and checks that parsers survive."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pulsar_ml.errors import PulsarMlError

MANY = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NO_FILES = ("folder", "pipe", "device", "loop")
HOSTILE: list[Any] = [
    None, True, -1, 0, 2**31, 2**63, 2**64, 2**200, 1e308, float("nan"), float("-inf"), "", "x" * 10_000,
    "\x00", "\ud800", "../../../etc/passwd", "</script>", [], [[]], [1, 2], {}, {"a": {}}, [None] * 100,
]  # fmt: skip


def make_no_file(kind: str, path: Path) -> None:
    """Puts one of ``NO_FILES`` where a plain file should be."""
    match kind:
        case "folder":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path)


def forbid_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes every load of a pickle an error."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a pickle was loaded")

    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)


def survives(parse: Callable[[Any], object], content: Any) -> None:
    """Checks that a file is read, or refused in one sentence."""
    try:
        parse(content)
    except (PulsarMlError, ValueError) as error:
        assert isinstance(error, PulsarMlError), repr(error)
        message = str(error)
        assert message and "\n" not in message.strip() and len(message) < 1_000, message[:2_000]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Cut, with other bytes here and there, or with a part missing, doubled or moved."""
    at, end = sorted(draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    match draw(st.sampled_from(["cut", "flip", "lose", "double", "garbage"])):
        case "cut":
            return content[:at]
        case "lose":
            return content[:at] + content[end:]
        case "double":
            return content[:end] + content[at:]
        case "garbage":
            return content[:at] + draw(st.binary(max_size=40)) + content[at:]
    changed = bytearray(content)
    for place in draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=8)):
        changed[place] ^= draw(st.integers(1, 255))
    return bytes(changed)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths to everything in a JSON value."""
    inner = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def put(content: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = content.copy()
    changed[path[0]] = put(content[path[0]], path[1:], value)
    return changed


@st.composite
def other_values(draw: st.DrawFn, text: str) -> str:
    """JSON in which some values are replaced by unexpected ones."""
    content = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(content)))
        content = put(content, path, draw(st.sampled_from(HOSTILE)))
    return json.dumps(content)


def digest(folder: Path) -> dict[str, str]:
    """The content of a folder."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        ).hexdigest()
        for path in sorted(folder.rglob("*"))
    }
