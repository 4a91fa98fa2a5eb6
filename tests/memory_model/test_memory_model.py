"""The engine's outcomes and classes equal those of independent SC, TSO and RC11 models."""

from __future__ import annotations

import pytest

from tests.memory_model import operational, rc11
from tests.memory_model.compare import MODES, compare, program_of_seed, shrunk
from tests.memory_model.engine import explored
from tests.memory_model.litmus import (
    ACQUIRE,
    LOAD,
    RELAXED,
    RELEASE,
    SEQ_CST,
    STORE,
    Litmus,
    Operation,
    Outcome,
)

PROGRAMS = 1_200
PIECES = 23
SAMPLERS = ("random", "pct", "pos", "surw")


def store(cell: int, value: int, order: int) -> Operation:
    return Operation(STORE, cell, order, value)


def load(cell: int, order: int) -> Operation:
    return Operation(LOAD, cell, order)


STORE_BUFFERING = Litmus(
    ((store(0, 1, RELEASE), load(1, ACQUIRE)), (store(1, 1, RELEASE), load(0, ACQUIRE)))
)
MESSAGE = Litmus(
    ((store(0, 1, RELAXED), store(1, 1, RELEASE)), (load(1, ACQUIRE), load(0, RELAXED)))
)
# docs/engine.md, Limits: seq_cst beside relaxed accesses of one location.
STRENGTHENED = Litmus(
    ((store(1, 1, SEQ_CST), store(0, 2, RELAXED)), (load(0, RELAXED), store(1, 4, SEQ_CST)))
)


@pytest.mark.parametrize("piece", range(PIECES))
def test_the_engine_agrees_with_the_models(piece: int) -> None:
    exhausted = 0
    for seed in range(piece, PROGRAMS, PIECES):
        for mode in MODES:
            found = compare(program_of_seed(seed), mode)
            assert found.agrees, f"program {seed}\n{shrunk(found)}"
            exhausted += found.exhausted
    assert exhausted > PROGRAMS / PIECES * len(MODES) * 0.95, (
        "searches that end say what is missing"
    )


@pytest.mark.parametrize("strategy", SAMPLERS)
def test_samplers_see_allowed_outcomes_only(strategy: str) -> None:
    for seed in range(60):
        program = program_of_seed(seed)
        for mode in MODES:
            seen = explored(program, mode=mode, strategy=strategy, executions=500).outcomes
            assert seen and not seen - allowed(program, mode), f"program {seed}\n{program}"


def allowed(program: Litmus, mode: str) -> set[Outcome]:
    if mode == "c11":
        return rc11.outcomes(program, strengthened=True)
    return operational.outcomes(program, buffered=mode == "tso")


def test_the_models_differ_where_the_textbooks_say() -> None:
    both_zero = (((0, 0), (0, 0)), (1, 1, 0))
    assert both_zero not in operational.outcomes(STORE_BUFFERING, buffered=False)
    assert both_zero in operational.outcomes(STORE_BUFFERING, buffered=True)
    assert both_zero in rc11.outcomes(STORE_BUFFERING)
    flag_without_data = (((0, 0), (1, 0)), (1, 1, 0))
    assert flag_without_data not in rc11.outcomes(MESSAGE)
    weak = Litmus((MESSAGE.threads[0], (load(1, RELAXED), load(0, RELAXED))))
    assert flag_without_data in rc11.outcomes(weak)


def test_the_engine_is_stronger_than_rc11_where_its_page_says() -> None:
    stale = (((0, 0), (2, 0)), (2, 1, 0))
    assert stale in rc11.outcomes(STRENGTHENED)
    assert stale not in rc11.outcomes(STRENGTHENED, strengthened=True)
    assert compare(STRENGTHENED, "c11").agrees


# Negative controls: models that are wrong in one rule disagree with the engine.


def test_a_model_without_release_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rc11, "RELEASING", ())
    assert compare(MESSAGE, "c11").missing


def test_a_model_without_seq_cst_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rc11, "SEQ_CST", -1)
    total = Litmus(
        (
            (store(0, 1, SEQ_CST), load(1, SEQ_CST), load(2, RELAXED)),
            (store(1, 1, SEQ_CST), load(0, SEQ_CST)),
        )
    )
    found = compare(total, "c11")
    assert found.missing and found.classes < found.graphs
    small = shrunk(found).program
    assert sum(map(len, small.threads)) == 4, f"store buffering is the smallest:\n{small}"


def test_a_model_without_buffers_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = operational.outcomes
    monkeypatch.setattr(
        operational, "outcomes", lambda program, buffered: real(program, buffered=False)
    )
    assert compare(STORE_BUFFERING, "tso").forbidden


def test_random_programs_tell_the_models_apart() -> None:
    programs = [program_of_seed(seed) for seed in range(200)]
    weaker = [
        sum(allowed(program, mode) != allowed(program, "sc") for program in programs)
        for mode in ("tso", "c11")
    ]
    assert weaker[0] >= 5 and weaker[1] >= 15, weaker
