"""Identity: of an explorer's answers, of a build, and of executions that are all of one class."""

from __future__ import annotations

import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pulsar_ml.harness.building import build
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.engine import Explorer
from pulsar_ml.harness.search.explore import MANY_OF_ONE_CLASS, explore
from pulsar_ml.harness.search.interleave import interleave
from tests import ROOT
from tests.engine.programs.build_programs import explorer, program_of, programs

ACCESSORS: dict[str, Callable[[Explorer], object]] = {
    "hashes": lambda result: result.hashes(),
    "answers": lambda result: result.answers().tolist(),
    "calls": lambda result: result.calls(0),
    "classes": lambda result: result.classes().tolist(),
    "steps": lambda result: result.steps(),
    "used": lambda result: result.used(),
    "end": lambda result: result.end(),
    "failed": lambda result: result.failed(),
    "failure": lambda result: result.failure(),
    "trace": lambda result: result.trace(),
    "decisions_made": lambda result: result.decisions_made(),
    "preemptions": lambda result: result.preemptions(),
    "unjudged": lambda result: result.unjudged(),
    "accept": lambda result: result.accept(),
}


@pytest.mark.parametrize("name", ACCESSORS)
def test_a_campaign_does_not_answer_for_another_one(name: str) -> None:
    first = explorer("bench_treiber", seed=1)
    second = explorer("bench_seqlock", seed=1)
    first.run(0, 10)
    first.again(3)
    before = ACCESSORS[name](first)
    second.run(0, 10)
    with pytest.raises(RuntimeError, match="another explorer used the engine"):
        ACCESSORS[name](first)
    first.again(3)
    if name not in ("classes", "accept"):
        assert ACCESSORS[name](first) == before


def test_a_search_does_not_show_the_path_of_another_one() -> None:
    first = explorer("bench_treiber", strategy="preemptions")
    first.run(0, 10)
    explorer("bench_seqlock", strategy="preemptions").run(0, 10)
    for ask in (first.path, first.skip):
        with pytest.raises(RuntimeError, match="another explorer used the engine"):
            ask()


def test_a_campaign_without_an_execution_has_no_answers() -> None:
    result = explorer("bench_treiber")
    assert not result.failed()
    with pytest.raises(RuntimeError, match="no execution"):
        result.hashes()


SETUP = runpy.run_path(str(ROOT / "setup.py"), run_name="not_the_build")
COVERED = (
    "pulsar_ml/harness/engine/memory/memory.c",
    "pulsar_ml/harness/engine/engine.h",
    "pulsar_ml/harness/engine/_engine.pyx",
    "pulsar_ml/harness/subjects/subject.h",
    "pulsar_ml/specs/range_cache.py",
    "pulsar_ml/suites/range_cache.py",
)


def test_the_build_id_covers_native_code_programs_models_suites_and_flags() -> None:
    is_source = SETUP["is_source"]
    assert all(is_source(ROOT / name) for name in COVERED)
    for name in ("program.py", "checked.py", "judge.py"):
        (path,) = (ROOT / "pulsar_ml").rglob(name)
        assert is_source(path)
    assert not is_source(ROOT / "pulsar_ml/harness/engine/_engine.c")  # Cython wrote it
    assert not is_source(ROOT / "pulsar_ml/errors.py")


@pytest.mark.parametrize("name", COVERED)
def test_the_build_id_changes_with_each(name: str, tmp_path: Path) -> None:
    keep = shutil.ignore_patterns("*.so", "*.json", "__pycache__", "_*.c")
    shutil.copytree(ROOT / "pulsar_ml", tmp_path / "pulsar_ml", ignore=keep)
    shutil.copy(ROOT / "setup.py", tmp_path)
    build_id = runpy.run_path(str(tmp_path / "setup.py"), run_name="not_the_build")["build_id"]
    before = build_id()
    assert build_id() == before
    with open(tmp_path / name, "a") as file:
        file.write("\n")
    assert build_id() != before


def test_flags_macros_and_the_engine_are_in_the_build_id_of_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids: list[str] = []

    def compile_nothing(*work: Any) -> None:
        ids.append(work[4]["PML_BUILD_ID"])

    monkeypatch.setattr(build, "compile_into", compile_nothing)
    source = tmp_path / "source" / "identity.pyx"
    source.parent.mkdir()
    source.write_text("")
    found = set()
    for options in (
        {},
        {"flags": ["-DOTHER"]},
        {"macros": {"OTHER": "1"}},
        {"checked": True},
        {"checked": True, "volatile": "relaxed"},
    ):
        result: Any = options
        module = build_extension(source, into=tmp_path / "made", **result)
        found.add(module.parent.name)
    assert len(found) == len(set(ids)) == 5


def test_thousands_of_executions_of_one_class_are_remarked() -> None:
    subject = programs().SUBJECTS["apart"]
    done = explore(subject, program_of("apart"), executions=2 * MANY_OF_ONE_CLASS)
    (remark,) = done.remarks
    assert f"all {2 * MANY_OF_ONE_CLASS:,} executions were of one class" in remark
    assert explore(subject, program_of("apart"), executions=MANY_OF_ONE_CLASS - 1).remarks == ()
    more = interleave(subject, program=program_of("apart"), executions=2 * MANY_OF_ONE_CLASS)
    assert remark in more.describe()


def test_executions_of_several_classes_are_not_remarked() -> None:
    subject = programs().SUBJECTS["bench_treiber"]
    program = program_of("bench_treiber")
    assert explore(subject, program, executions=2 * MANY_OF_ONE_CLASS).remarks == ()
