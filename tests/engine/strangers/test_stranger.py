"""C++ that knows nothing of the engine is checked without a change to its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.load import load_checked
from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.subjects.program import Program


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exploration]:
    path = build_extension(
        Path(__file__).with_name("stranger.pyx"),
        into=tmp_path_factory.mktemp("stranger"),
        checked=True,
        language="c++",
        flags=["-std=c++17"],
    )
    subjects = load_checked(path).SUBJECTS
    found = {}
    for name, subject in subjects.items():
        program = Program.generate(subject, 1, threads=3, operations=3, noise=False)
        found[name] = explore(subject, program, executions=5_000)
    return found


def test_a_use_after_free_is_found(done: dict[str, Exploration]) -> None:
    failure = done["bare_box"].failure
    assert failure is not None
    assert failure.kind in ("data race", "use after free")


def test_a_std_mutex_is_a_lock(done: dict[str, Exploration]) -> None:
    assert done["locked_box"].failure is None, done["locked_box"].failure
    assert done["locked_box"].verdict == "clean"
