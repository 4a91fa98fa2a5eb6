"""Sequential and quiescent consistency against all orders, with their witnesses."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.linearize import (
    ILLEGAL,
    LEGAL,
    SEQUENTIAL,
    UNKNOWN,
    Options,
    check,
)
from pulsar_ml.harness.linearize.consistency.criteria import check_criterion
from pulsar_ml.harness.linearize.effort import FOR_EVER, Effort
from pulsar_ml.harness.linearize.searches import PROGRAM_ORDER, Searches
from pulsar_ml.harness.models import MODELS, CasRegister, Queue, Register
from pulsar_ml.harness.models.model import Keyed
from tests.linearize.consistency.definitions import in_order, sequential
from tests.linearize.fuzz import DRAWS, drawn
from tests.linearize.histories import hard_queue
from tests.linearize.oracle import QUIESCENCE, allowed, oracle, relation, respects

# A thread that goes on after a write that did not return: the write may come late, but the later
# read comes after the first write all the same.
GOING_ON = history_of(
    [
        Operation(0, "write", (1,), None, 0, 1),
        Operation(0, "write", (2,), None, 2, None),
        Operation(0, "read", (), None, 3, 4),
    ]
)


@pytest.mark.parametrize("natively", [True, False])
def test_answers_are_those_of_all_orders(natively: bool) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    options = Options(natively=natively)
    for seed in range(120):
        draw = random.Random(seed)
        name = sorted(DRAWS)[seed % len(DRAWS)]
        keyed = name != "map" and draw.random() < 0.2
        model = Keyed(MODELS[name]()) if keyed else MODELS[name]()
        history = drawn(draw, name, keyed, 6, stays=draw.random() < 0.5)
        found = check_criterion(history, model, "sequential", options=options)
        assert (found.answer == LEGAL) == sequential(history, model), seed
        counts["sequential", found.answer] += 1
        if found.answer == LEGAL:
            assert in_order(history, model, found.order)
            assert in_program(history, found.order)
        else:
            assert not sequential(history.select(found.core), model)
        found = check_criterion(history, model, "quiescent", options=options)
        assert (found.answer == LEGAL) == oracle(history, model, QUIESCENCE), seed
        counts["quiescent", found.answer] += 1
        if found.order:
            assert respects(found.order, relation(history, QUIESCENCE))
            assert allowed(history, model, found.order)
    assert min(counts.values()) >= 10 and len(counts) == 4, counts


def in_program(history: History, order: tuple[int, ...]) -> bool:
    """True when the order has all calls that returned, those of each thread in its order."""
    records = history.records
    returned = {index for index in range(len(history)) if records["ending"][index] == 0}
    sooner = [
        (one, other) for at, one in enumerate(order) for other in order[at + 1 :]
        if records["thread"][one] == records["thread"][other]
        and records["invoked"][one] > records["invoked"][other]
        and records["ending"][other] == 0
    ]  # fmt: skip
    return returned <= set(order) and not sooner


def test_a_thread_that_goes_on_keeps_its_order() -> None:
    for natively in (True, False):
        options = Options(natively=natively)
        found = check_criterion(GOING_ON, Register(), "sequential", options=options)
        assert (found.answer, found.core) == (ILLEGAL, (0, 2))
        assert check(GOING_ON, Register(), options=options).weaker[SEQUENTIAL] == ILLEGAL
    # Negative control: the search as it is loses the order of the thread there.
    searches = Searches(GOING_ON, Register(), Options(natively=False), Effort.of(FOR_EVER, None))
    assert searches.of_model(None, 1000, PROGRAM_ORDER)[0] == LEGAL


def test_a_crashed_call_comes_late_but_not_early() -> None:
    late = [
        Operation(0, "write", (1,), None, 0, 1),
        Operation(0, "write", (2,), None, 2, None),
        Operation(0, "read", (), 1, 3, 4),
        Operation(1, "read", (), 2, 5, 6),
    ]
    assert check_criterion(history_of(late), Register(), "sequential").answer == LEGAL
    early = [*late[:2], Operation(0, "read", (), 1, 3, 4), Operation(1, "read", (), 2, 5, 6),
             Operation(1, "read", (), None, 7, 8)]  # fmt: skip
    assert check_criterion(history_of(early), Register(), "sequential").answer == ILLEGAL


def test_keys_that_are_fine_alone_need_not_be_together() -> None:
    """Sequential consistency does not compose: each key alone has an order here."""
    history = history_of(
        [
            Operation(0, "write", ("x", 1), None, 0, 1),
            Operation(0, "read", ("y",), None, 2, 3),
            Operation(1, "write", ("y", 1), None, 0, 1),
            Operation(1, "read", ("x",), None, 2, 3),
        ]
    )
    found = check_criterion(history, Keyed(Register()), "sequential")
    assert (found.answer, found.core) == (ILLEGAL, (0, 1, 2, 3))
    for key in "xy":
        part = [at for at in range(4) if history.call(at).arguments[0] == key]
        alone = check_criterion(history.select(part), Keyed(Register()), "sequential")
        assert alone.answer == LEGAL


def test_limits_and_models_that_are_refused() -> None:
    hard = history_of(hard_queue())
    few = Options(most_steps=50)
    found = check_criterion(hard, Queue(), "sequential", options=few)
    assert (found.answer, found.reason[:12]) == (UNKNOWN, "out of steps")
    with pytest.raises(UsageError, match="there is no criterion 'causal'; it should be one of"):
        check_criterion(hard, Queue(), "causal")

    class Ending(Queue):
        def ends(self, call: object) -> bool:
            return False

    with pytest.raises(UsageError, match="calls with two moments"):
        check_criterion(hard, Ending(), "quiescent")


def run(tmp_path: Path, operations: list[Operation], *arguments: str) -> tuple[int, str]:
    path = tmp_path / "history.jsonl"
    save_history(history_of(operations), path)
    done = CliRunner().invoke(main, ["linearize", str(path), *arguments])
    return done.exit_code, done.output


STALE = [Operation(0, "write", ("a",), None, 0, 1), Operation(1, "read", (), None, 2, 3)]


def test_the_command_answers_with_a_witness(tmp_path: Path) -> None:
    assert run(tmp_path, STALE, "--model", "register")[0] == 1
    code, output = run(tmp_path, STALE, "--model", "register", "--criterion", "sequential")
    assert code == 0
    assert output.startswith("legal: sequentially consistent (2 operations, ")
    assert output.endswith("steps)\n  an order: read() -> None; write('a')\n")
    code, output = run(tmp_path, STALE, "--model", "register", "--criterion", "quiescent")
    assert code == 1 and output.startswith("illegal: not quiescently consistent (2 operations")
    assert "  illegal by themselves: 2 of 2\n    operation 0 (line 2), write('a')\n" in output
    code, output = run(tmp_path, STALE, "--model", "register", "--criterion", "session", "--json")
    assert (code, json.loads(output)["order"]) == (0, [0])


def test_what_the_command_refuses(tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")
    arguments = ["--model", "register", "--criterion", "quiescent", "--html", page]
    code, output = run(tmp_path, STALE, *arguments)
    assert code == 2 and "--html shows linearizability, not quiescent" in output
    assert not Path(page).exists()
    queue = [Operation(0, "enqueue", (1,), None, 0, 1)]
    code, output = run(tmp_path, queue, "--model", "queue", "--criterion", "session")
    assert code == 2 and "are defined for registers and maps of them" in output


def test_a_model_of_compare_and_set_in_program_order() -> None:
    history = history_of(
        [
            Operation(0, "cas", (None, 1), True, 0, 1),
            Operation(1, "cas", (1, 2), True, 2, 3),
            Operation(1, "read", (), 1, 4, 5),
        ]
    )
    found = check_criterion(history, CasRegister(), "sequential")
    assert found.answer == ILLEGAL and set(found.core) >= {1, 2}
