"""Searches of random programs of a read-write lock and a semaphore, which no model here has."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.search.explore import explore
from tests.memory_model.compare import faults_of_seed
from tests.memory_model.engine import call_of, cells, explored, program_of
from tests.memory_model.generator import program_of_seed
from tests.memory_model.litmus import WAIT, Litmus
from tests.memory_model.objects.programs import objects_of_seed

MODES = ("sc", "tso", "c11")
MOST = 5_000  # executions of a search that is compared


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("faults", [(), ("timeout",)])
def test_read_write_locks_and_semaphores_have_one_execution_a_class(
    mode: str, faults: tuple[str, ...]
) -> None:
    compared = reduced = 0
    for seed in range(150):
        litmus = objects_of_seed(seed)
        calls = program_of(litmus)
        whole = explored(
            litmus, calls, mode=mode, strategy="enumerate", executions=MOST, faults=faults
        )
        if not whole.exhausted:
            continue
        found = explored(
            litmus, calls, mode=mode, strategy="reduce", executions=MOST, faults=faults
        )
        if found.unreduced:  # in mode tso, an attempt with a full buffer
            assert mode == "tso"
            continue
        assert found.hashes == whole.hashes, f"program {seed}:\n{litmus}"
        assert found.outcomes == whole.outcomes, f"program {seed}:\n{litmus}"
        assert found.executions - found.blocked == found.classes, f"program {seed}:\n{litmus}"
        compared += 1
        reduced += found.executions < whole.executions
    assert compared > 130 and reduced > 60


def with_children(litmus: Litmus) -> None:
    for thread in range(litmus.roots, len(litmus.threads)):
        cells().set_child(thread, [call_of(call) for call in litmus.threads[thread]])


@pytest.mark.parametrize("mode", MODES)
def test_deadlocks_beside_waits_and_deadlines_replay(mode: str) -> None:
    """A search with reduction offers no thread that would wait; a replay makes it wait."""
    subject = cells().SUBJECTS["cells"]
    drawn = [program_of_seed(seed) for seed in range(200)]
    programs = [
        (litmus, faults_of_seed(seed, litmus))
        for seed, litmus in enumerate(drawn)
        if litmus.has(WAIT, "timed_wait", "try_lock", "lock_until", "lock_for")
    ]
    programs += [(objects_of_seed(seed), ("timeout",)) for seed in range(80)]
    replayed = 0
    for litmus, faults in programs:
        with_children(litmus)
        done = explore(
            subject, program_of(litmus), mode=mode, strategy="reduce", executions=500, faults=faults
        )
        if done.failure is not None:
            assert done.failure.replay(subject).exact, str(litmus)
            replayed += 1
    assert replayed > 15
