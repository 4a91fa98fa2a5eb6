"""The checked build of real subjects: clean under the engine, wrong operations found, real threads
served.
"""

from __future__ import annotations

import importlib

import pytest

import pulsar_ml.harness.engine  # noqa: F401  (before the checked module)
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.subjects import threads
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject

SUBJECTS: dict[str, Subject] = importlib.import_module("pulsar_ml.operations._checked").SUBJECTS


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("mode", ["sc", "c11"])
def test_a_subject_is_clean_in_the_controlled_world(name: str, mode: str) -> None:
    subject = SUBJECTS[name]
    for seed in range(3):
        program = Program.generate(subject, seed, threads=2, operations=3, noise=False)
        done = explore(subject, program, executions=300, seed=seed, mode=mode, reuse="mixed")
        assert done.failure is None, done.failure


def test_an_operation_that_is_wrong_on_purpose_is_found() -> None:
    subject = SUBJECTS["refcount"]
    wrong = next(
        operation.name for operation in subject.operations if "fetch_add" in operation.name
    )
    mix = {"publish": 2, wrong: 2, "release": 4}
    found = []
    for seed in range(10):
        program = Program.generate(subject, seed, threads=3, operations=4, mix=mix, noise=False)
        done = explore(subject, program, executions=1_000, seed=seed)
        found.append(done.failure is not None)
    assert any(found)


def test_an_allocation_failure_is_a_choice() -> None:
    subject = SUBJECTS["mpsc_queue"]
    program = Program.generate(subject, 1, threads=2, operations=6, noise=False)
    with_faults = explore(subject, program, executions=2_000, faults=("no_memory",))
    assert with_faults.failure is None, with_faults.failure


def test_the_checked_module_serves_real_threads_as_well() -> None:
    subject = SUBJECTS["refcount"]
    program = Program.generate(subject, 5, threads=2, operations=500)
    instance = subject.create(threads=2, settings=program.settings)
    done = threads.run_program(instance, program)
    instance.check()
    assert done.operations == 1_000
    assert not done.violations
