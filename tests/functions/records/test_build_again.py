"""``replay``, ``trace`` and ``shrink`` build the subject of a record from its source file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.exit_codes import CLEAN, USAGE, VIOLATION
from pulsar_ml.harness import Call, Subject, interleave, operations
from pulsar_ml.harness.functions.build_again import build_again
from pulsar_ml.harness.search.failure import WRONG_ANSWERS, Failure
from pulsar_ml.harness.signatures.recipes import reference
from pulsar_ml.harness.subjects.recipe import Recipe, find_recipe, recipe_of
from pulsar_ml.operations import _checked
from tests import ROOT
from tests.commands import call
from tests.functions.test_command import RACE

SOURCES = ROOT / "tests" / "functions" / "operations"
BUILDS = ROOT / "build" / "functions"
COMMANDS = ("replay", "trace", "shrink")


class Mailbox:
    """A queue, as a class of a test module."""

    operations: ClassVar[Mapping[str, int]] = {"push": 1, "pop": 0}

    def init(self) -> tuple[object, ...]:
        return ()

    def step(self, state: tuple[object, ...], call: Call) -> list[tuple[object, ...]]:
        if call.name == "push":
            return [state if call.result is False else (*state, call.arguments[0])]
        if call.result is None:
            return [state] if not state else []
        return [state[1:]] if state and state[0] == call.result else []


def ring(file: Path, **more: Any) -> Subject:
    options: dict[str, Any] = {"push": "push(int)", "pop": "bool pop(int&)", "into": BUILDS}
    return operations(file, "Ring<int, 2>", **{"model": "queue", **options, **more})


def failure_of(subject: Subject) -> Failure:
    found = interleave(subject, executions=20_000, races=False).failure
    assert found is not None and found.kind == WRONG_ANSWERS
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copy(SOURCES / "ring.hpp", tmp_path)
    return tmp_path


@pytest.mark.parametrize("model", ["queue", Mailbox])
def test_wrong_answers_of_generated_operations(folder: Path, model: Any) -> None:
    failure = failure_of(ring(folder / "ring.hpp", model=model))
    record = folder / "record.json"
    record.write_text(failure.to_json())
    for command in COMMANDS:
        done = call(command, str(record), "--trust")
        assert done.code == VIOLATION, done.err
        assert "wrong answers: " in done.out
        assert "the failure was made again, step by step" in done.out
    trace = call("trace", str(record), "--trust").out
    assert "Ring.tail -> 0 " in trace and "< None" in trace
    assert build_again(failure).judge is not None


def test_other_signatures_come_again(folder: Path) -> None:
    """The order of the operations, meanings, roles and a structure made by functions."""
    shutil.copy(SOURCES / "stack.h", folder)
    stack = operations(
        "stack.h", "stack", push="void stack_push(self, int value in 5..6)",
        pop=("int stack_pop(self, int* value)", {-11: None}), create="stack_init(self, 4)",
        destroy="stack_clear(self)", model="stack", flags=["-DUNLOCKED"], into=BUILDS,
        one_thread=["push"],
    )  # fmt: skip
    found = interleave(stack, executions=20_000).failure
    assert found is not None
    again = build_again(found)
    assert again.operations == stack.operations and again.build_id == stack.build_id
    assert found.replay(again).exact


def test_a_test_function(folder: Path) -> None:
    (folder / "race.c").write_text("#ifdef BUGGY\n" + RACE + "#endif\n")
    found = call("check", "race.c", "--flag=-DBUGGY", "--executions", "300")
    assert found.code == VIOLATION
    (record,) = (folder / ".pulsar_ml" / "failures").iterdir()
    for command in COMMANDS:
        done = call(command, str(record), "--trust")
        assert done.code == VIOLATION, done.err
        assert "data race: " in done.out and "  test_race, 2 threads, mode c11" in done.out
    (folder / "race.c").write_text(RACE.replace("int plain", "_Atomic int plain"))
    mended = call("replay", str(record), "--trust")
    assert mended.code == CLEAN
    assert "this is not the build that failed" in mended.out
    (folder / "race.c").write_text(RACE.replace("test_race", "test_other"))
    gone = call("replay", str(record), "--trust")
    assert gone.code == USAGE and "has no test 'test_race' any more; it has: test_add" in gone.err
    (folder / "race.c").unlink()
    gone = call("replay", str(record), "--trust")
    assert gone.code == USAGE and "race.c, which does not exist; run the command in" in gone.err


def test_the_file_is_found_in_another_working_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = failure_of(ring(folder / "ring.hpp"))
    copy = folder / "copy"
    copy.mkdir()
    monkeypatch.chdir(copy)
    assert Recipe.from_text(failure.recipe).path() == (folder / "ring.hpp").resolve()
    shutil.copy(SOURCES / "ring.hpp", copy)
    assert Recipe.from_text(failure.recipe).path() == (copy / "ring.hpp").resolve()


def test_a_record_builds_nothing_without_trust(folder: Path) -> None:
    failure = failure_of(ring(folder / "ring.hpp"))
    (folder / "ring.hpp").write_text("#error built\n")
    record = folder / "record.json"
    record.write_text(failure.to_json())
    for command in COMMANDS:
        refused = call(command, str(record))
        assert refused.code == USAGE
        assert "names a source file and flags of the compiler" in refused.err
        assert "--trust" in refused.err
    assert "#error built" in call("replay", str(record), "--trust").err


def test_a_record_without_a_recipe_names_the_way(folder: Path) -> None:
    (folder / "race.c").write_text(RACE)
    call("check", "race.c", "--executions", "300")
    (record,) = (folder / ".pulsar_ml" / "failures").iterdir()
    record.write_text(replace(Failure.from_text(record.read_text()), recipe="").to_json())
    done = call("replay", str(record))
    assert done.code == USAGE
    assert "does not name its file; name it: pulsar-ml check FILE --replay RECORD" in done.err


def test_a_model_without_a_name_is_left_out(folder: Path) -> None:
    class Local(Mailbox):
        pass

    failure = failure_of(ring(folder / "ring.hpp", model=Local))
    again = build_again(failure)
    assert again.judge is None
    assert failure.replay(again).exact, "by its steps"
    record = folder / "record.json"
    record.write_text(failure.to_json())
    assert call("replay", str(record), "--trust").code == VIOLATION
    refused = call("shrink", str(record), "--trust")
    assert refused.code == USAGE and "does not name the model" in refused.err


def test_names_of_models() -> None:
    assert reference(None) is None
    assert reference("queue") == "queue"
    assert reference(Mailbox) == f"{Path(__file__).resolve()}:Mailbox"
    assert reference(Mailbox()) is None
    assert reference(lambda: Mailbox()) is None


@pytest.mark.parametrize(
    "change",
    [
        {"call": "system"},
        {"version": 2},
        {"options": {}},
        {"options": {"signatures": [1]}},
        {"file": 3},
    ],
)
def test_a_damaged_recipe_is_one_sentence(folder: Path, change: dict[str, Any]) -> None:
    failure = failure_of(ring(folder / "ring.hpp"))
    damaged = json.dumps({**json.loads(failure.recipe), **change})
    with pytest.raises((BadRecordError, UsageError)) as caught:
        build_again(replace(failure, recipe=damaged))
    assert "recipe" in str(caught.value) and "\n" not in str(caught.value)


def test_a_subject_of_a_module_has_no_recipe() -> None:
    assert all(find_recipe(subject) is None for subject in _checked.SUBJECTS.values())


def test_options_without_json_give_no_recipe(folder: Path) -> None:
    subject = ring(folder / "ring.hpp", pop=("bool pop(int&)", {1: object()}), model=None)
    assert recipe_of(subject) == ""
    assert recipe_of(ring(folder / "ring.hpp", model=None)) != ""
