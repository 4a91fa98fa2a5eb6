"""A call that blocks in code that was not recompiled ends its execution, with the native stack."""

from __future__ import annotations

import pytest

from pulsar_ml.harness.search.explore import Exploration, explore
from pulsar_ml.harness.search.shrink import shrink
from tests.engine.sandbox.test_sandbox import program_of, rogues


def search(name: str, executions: int) -> Exploration:
    subject = rogues().SUBJECTS[name]
    return explore(subject, program_of(name), executions=executions, seed=3, strategy="random")


# program: a part of the names of the calls that block, and the caller whose place is named.
BLOCKING = {
    "waits_for_input": ("read", "read_for_ever sandbox/rogues.h:"),
    "waits_in_library": ("lock", "waits_in_library_body sandbox/rogues.h:"),
}


@pytest.mark.parametrize("name", BLOCKING)
def test_a_blocked_call_is_a_failure_with_its_native_stack(name: str) -> None:
    call, caller = BLOCKING[name]
    failure = search(name, 50).failure
    assert failure is not None
    assert failure.kind == "blocked call"
    assert "not recompiled" in failure.message
    assert not failure.ended_process
    assert call in " ".join(failure.where[:2]), failure.where
    assert any(place.startswith(caller) for place in failure.where), failure.where
    assert failure.replay(rogues().SUBJECTS[name]).exact
    assert shrink(failure, rogues().SUBJECTS[name]) == failure


def test_a_call_that_returns_is_not_blocked() -> None:
    done = search("sleeps_in_library", 1_500)  # three seconds in the same call, again and again
    assert done.verdict == "clean"
