"""Records of failures of an object's methods: the command replays, traces and shrinks them."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pulsar_ml.harness import InterleavingFailure
from pulsar_ml.harness import check as checked
from pulsar_ml.harness.functions.build_again import build_again
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects import hash_seed
from tests.commands import Called, call

NAME = "accounts_of_records"
MODULE = """
class Accounts:
    def __init__(self):
        self.left, self.right = 5, 5

    def move(self, amount):
        if amount > 4:
            raise ValueError(amount)
        self.left -= amount
        self.right += amount

    def total(self):
        return self.left + self.right


class Model(Accounts):
    pass
"""


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write the record of a total that was read in the middle of a move."""
    monkeypatch.setattr(hash_seed, "OF_PROCESS", "0")  # as in a process of the command
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    accounts = importlib.import_module(NAME)
    with pytest.raises(InterleavingFailure) as caught:
        checked(
            accounts.Accounts,
            model=accounts.Model,
            methods={"total": [], "move": [(1, 3)]},  # not in the order of the alphabet
            executions=400,
        )
    path = tmp_path / "record.json"
    path.write_text(caught.value.failure.to_json())
    yield path
    sys.modules.pop(NAME)


def replay(*words: str) -> Called:
    return call("check", f"{NAME}.py", "--replay", "record.json", *words)


def test_the_command_repeats_a_record_with_its_answers(record: Path) -> None:
    for done in (replay(), call("trace", str(record), "--trust")):
        assert done.code == 1, done.err
        assert "the failure was made again, step by step" in done.out
        assert "> total()" in done.out
        assert "< None" in done.out
        assert "status" not in done.out


def test_a_shrunk_record_stays_a_failure(record: Path) -> None:
    done = call("shrink", str(record), "--trust")
    assert done.code == 1, done.err
    assert call("replay", str(record), "--trust").code == 1


def test_a_mended_class_is_clean(record: Path) -> None:
    sys.modules.pop(NAME)
    mended = MODULE.replace("self.left + self.right", "10")
    Path(f"{NAME}.py").write_text(mended)
    done = replay()
    assert done.code == 0, done.out
    assert "this is not the build that failed; the execution ended without a failure" in done.out


def test_code_runs_only_from_files_that_are_named(record: Path) -> None:
    Path("other.py").write_text("")
    done = call("check", "other.py", "--replay", "record.json")
    assert done.code == 2
    assert f"name it: check {NAME}.py --replay RECORD" in done.err
    assert call("replay", str(record)).code == 2  # without --trust


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Nobody"}, "has no class or function 'Nobody'"),
        ({"module": "json"}, "has no class or function 'Accounts' of the module json"),
        ({"module": "no_such_module_here"}, "cannot be imported: ModuleNotFoundError"),
        ({"methods": [["move"]]}, "is damaged"),
        ({"methods": {"move": [[1]]}}, "is damaged"),
        ({"model": ["accounts"]}, "is damaged"),
    ],
)
def test_a_damaged_recipe_is_refused(
    record: Path, changes: dict[str, object], message: str
) -> None:
    content = json.loads(record.read_text())
    recipe = json.loads(content["recipe"])
    recipe["options"].update(changes)
    content["recipe"] = json.dumps(recipe)
    with pytest.raises(ValueError, match=message):
        build_again(Failure.from_text(json.dumps(content)))


def test_a_class_without_a_name_has_no_recipe() -> None:
    class Local:
        def __init__(self) -> None:
            self.value = 0

        def add(self, more: int) -> None:
            self.value += more

        def read(self) -> int:
            return self.value

    with pytest.raises(InterleavingFailure) as caught:
        checked(Local, model="counter", methods={"add": [(1, 3)], "read": []}, executions=4_000)
    assert not caught.value.failure.recipe


def test_a_wrong_answer_of_an_exception() -> None:
    """The table names the exception that left a method."""
    with pytest.raises(InterleavingFailure, match="< raises KeyError"):
        checked(Takes, model=TakesSafely, methods={"take": []}, executions=400)


class Takes:
    """Takes a key in two steps: the second of two threads may find it gone."""

    def __init__(self) -> None:
        self.keys = {"one": 1}

    def take(self) -> bool:
        if "one" not in self.keys:
            return False
        del self.keys["one"]
        return True


class TakesSafely(Takes):
    def take(self) -> bool:
        return self.keys.pop("one", None) is not None
