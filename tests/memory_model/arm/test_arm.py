"""The model of AArch64 has the published verdicts, and RC11 allows all but load buffering of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import ROOT
from tests.memory_model.arm.a64 import (
    LLSC,
    LSE,
    TARGETS,
    WRONG,
    assembled,
    translated,
    translation,
    wrong_translation,
)
from tests.memory_model.arm.compare import (
    RULES,
    Verdicts,
    arm_program_of_seed,
    compared,
    judged,
    shows,
    shrunk,
)
from tests.memory_model.arm.published import PUBLISHED, Published
from tests.memory_model.arm.sweep import work
from tests.memory_model.litmus import ACCESSES, FENCE, RELAXED, SEQ_CST, Litmus, Operation
from tests.memory_model.models import allowed
from tests.memory_model.programs import MIXED_ORDERS

PROGRAMS = 5_000
CONTROLS = 20_000  # most programs until a wrong translation is noticed


def is_shown(published: Published, omitted: str = "") -> bool:
    assembly = assembled(*published.threads)
    found = judged(assembly, omitted=omitted)
    outcomes = found.arm | found.buffering
    return shows(assembly.program, outcomes, published.reads, published.finals)


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda each: each.name)
def test_a_litmus_program_has_its_published_verdict(published: Published) -> None:
    assert is_shown(published) is published.verdict, published.threads


@pytest.mark.parametrize("rule", RULES)
def test_a_model_without_a_rule_contradicts_a_published_verdict(rule: str) -> None:
    wrong = [each.name for each in PUBLISHED if is_shown(each, omitted=rule) is not each.verdict]
    assert wrong, f"no published verdict needs {rule}"


def test_load_buffering_is_counted_apart() -> None:
    lb = next(each for each in PUBLISHED if each.name == "LB")
    assembly = assembled(*lb.threads)
    found = judged(assembly)
    assert shows(assembly.program, found.buffering, lb.reads)
    assert not shows(assembly.program, found.arm | found.c11, lb.reads)
    assert found.agrees and found.buffered == 1 and len(found.missed) == 1


def test_rc11_has_every_execution_of_arm_but_load_buffering() -> None:
    counts = work((range(PROGRAMS), 0))
    assert counts.disagreements == 0, "\n\n".join(counts.found)
    assert counts.programs == PROGRAMS and counts.translations > PROGRAMS
    # The programs tell the models apart: Arm is weaker in one way and stronger in others.
    assert counts.missed > PROGRAMS / 100 and counts.stronger > PROGRAMS / 100, counts


def test_the_programs_have_each_operation_and_nothing_else() -> None:
    kinds = {call.kind for seed in range(200) for call in arm_program_of_seed(seed).calls()}
    assert kinds == set(ACCESSES[: ACCESSES.index(FENCE) + 1])


def test_both_constructions_have_the_same_executions_of_rc11() -> None:
    for seed in range(500):
        program = arm_program_of_seed(seed)
        found = compared(program, translation(LSE))
        other = allowed(program, "c11", strengthened=False)
        assert (found.c11, found.graphs) == (other.outcomes, other.graphs), f"program {seed}"
        assert found.engine == allowed(program, "c11").outcomes, f"program {seed}"


def fenced(program: Litmus) -> Litmus:
    """Return a program with a barrier between all accesses of a thread, and no other order."""
    barrier = Operation(FENCE, order=SEQ_CST)
    return Litmus(
        tuple(
            tuple(
                each
                for call in calls
                if call.kind != FENCE
                for each in (replace(call, order=RELAXED), barrier)
            )
            for calls in program.threads
        )
    )


def test_arm_is_sequentially_consistent_between_barriers_and_never_stronger() -> None:
    for seed in range(500):
        program = arm_program_of_seed(seed)
        assert allowed(program, "sc").outcomes <= compared(program, translation(LSE)).arm
        between = fenced(program)
        found = compared(between, translation(LLSC))
        assert found.arm == allowed(between, "sc").outcomes and not found.buffered, between


def test_the_engine_leaves_out_more_where_an_access_is_seq_cst() -> None:
    """docs/engine.md, Limits: no structure has such an access."""
    mixed = compared(MIXED_ORDERS, translation(LLSC))
    assert mixed.agrees and len(mixed.left_out) == 1
    seen = 0
    for seed in range(PROGRAMS):
        program = arm_program_of_seed(seed)
        found = compared(program, translation(LLSC))
        assert found.engine <= found.c11
        if found.left_out:
            seen += 1
            assert any(call.order == SEQ_CST and call.kind != FENCE for call in program.calls()), (
                program
            )
    assert seen


def test_no_structure_has_a_seq_cst_access() -> None:
    """The seam has none: the only seq_cst order is a fence's."""
    seam = (ROOT / "pulsar_ml" / "sync" / "sync.h").read_text()
    lines = [line for line in seam.splitlines() if "SEQ_CST" in line]
    assert len(lines) == 1 and "__atomic_thread_fence(__ATOMIC_SEQ_CST)" in lines[0]


def noticed(name: str) -> Verdicts:
    """Return the verdicts of the first random program that notices a wrong translation."""
    by = wrong_translation(name)
    right = translation(WRONG[name][0])
    for seed in range(CONTROLS):
        program = arm_program_of_seed(seed)
        if translated(program, by) != translated(program, right):
            found = compared(program, by)
            if not found.agrees:
                return found
    raise AssertionError(f"no random program notices that {name}")


@pytest.mark.parametrize("name", WRONG)
def test_random_programs_notice_a_wrong_translation(name: str) -> None:
    found = noticed(name)
    small = shrunk(found, wrong_translation(name))
    assert compared(small.program, translation(WRONG[name][0])).agrees
    assert small.arm - small.c11 and "outcome on Arm that RC11 forbids" in str(small)
    assert sum(map(len, small.program.threads)) <= 6, f"it could be smaller:\n{small}"


def test_a_disagreement_is_printed_as_its_smallest_program() -> None:
    found = noticed("a release store is plain")
    text = str(shrunk(found, wrong_translation("a release store is plain")))
    assert "(release)" in text and "thread 1" in text, text


def test_targets_differ_in_exchanges_and_acquiring_loads_only() -> None:
    first = translation(LLSC)
    for target in TARGETS[1:]:
        other = translation(target)
        assert {kind for (kind, _), name in other.items() if name != first[kind, _]} <= {
            "exchange",
            "cas",
            "load",
        }
