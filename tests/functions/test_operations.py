"""A structure becomes a subject by the signatures of its operations, in C, C++ and Cython."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.harness import (
    Call,
    InterleavingFailure,
    Interleavings,
    Program,
    Subject,
    explore,
    interleave,
    operations,
    record_run,
    strategies,
)
from pulsar_ml.harness.search.failure import sentence
from pulsar_ml.harness.signatures.answers import answer_text, value_of
from tests import ROOT

HERE = Path(__file__).parent / "operations"
BUILDS = ROOT / "build" / "functions"
SEEDS = range(20)


def ring(**more: Any) -> Subject:
    chosen = {"push": "push(int)", "pop": "bool pop(int&)", "one_thread": ["push", "pop"]}
    options = {"model": "queue", "criterion": "sequential", "into": BUILDS, **chosen, **more}
    return operations(HERE / "ring.hpp", "Ring<int, 2>", **options)


def stack(**more: Any) -> Subject:
    options: dict[str, Any] = {
        "push": "void stack_push(self, int value in 5..6)",
        "pop": ("int stack_pop(self, int* value)", {-11: None}),
        "create": "stack_init(self, 4)",
        "destroy": "stack_clear(self)",
        "model": "stack",
        "into": BUILDS,
        **more,
    }
    return operations(HERE / "stack.h", "stack", **options)


class Register:
    """A register that begins with 1. ``split`` is a compare-and-set, too."""

    operations: ClassVar[Mapping[str, int]] = {
        "read": 0, "write": 1, "cas": 2, "split": 2, "small": 0, "look": 0,
    }  # fmt: skip

    def init(self) -> int:
        return 1

    def step(self, state: int, call: Call) -> list[int]:
        if call.name == "write":
            return [int(str(call.arguments[0]))]
        if call.name == "read":
            return [state] if call.result == state else []
        if call.name in ("cas", "split"):
            found = state == call.arguments[0]
            after = int(str(call.arguments[1])) if found else state
            return [after] if call.result is found else []
        return [state]


PLAIN = {"read": 1, "write": 1, "cas": 1}


def register(**more: Any) -> Subject:
    options: dict[str, Any] = {
        "read": "int read()",
        "write": "write(int)",
        "cas": "bint swap_whole(int, int new)",
        "split": "bint swap(int, int new)",
        "small": "small()",
        "look": "int checked()",
        "model": Register,
        "create": "Register(1)",
        "into": BUILDS,
        **more,
    }
    return operations(HERE / "register.pyx", "Register", **options)


def searched(subject: Subject, seed: int = 0, **options: Any) -> Interleavings:
    return interleave(subject, **{"executions": 4_000, "seed": seed, **options})


# Found and silent -------------------------------------------------------------------------------


def test_a_ring_that_publishes_too_weakly_is_found_and_the_mended_one_is_silent() -> None:
    weak = ring(flags=["-DORDER=std::memory_order_relaxed"])
    kinds = {(found := searched(weak, seed).failure) and found.kind for seed in SEEDS}
    assert kinds == {"data race"}
    for seed in range(4):
        assert searched(ring(), seed).outcome().startswith("a failure is rarer")


def test_wrong_answers_are_found_by_the_model() -> None:
    shared = ring(one_thread=())  # two producers and two consumers
    for seed in SEEDS:
        failure = searched(shared, seed, races=False, executions=20_000).failure
        assert failure is not None and failure.kind == "wrong answers"
    assert searched(ring(one_thread=(), model=None), races=False).failure is None


def test_free_functions_of_c() -> None:
    broken = stack(flags=["-DUNLOCKED"])
    kinds = {(found := searched(broken, seed).failure) and found.kind for seed in SEEDS}
    assert kinds <= {"wrong answers", "leak", "use after free"}
    for seed in range(4):
        assert searched(stack(), seed).outcome().startswith("a failure is rarer")


def test_methods_of_a_cython_class() -> None:
    subject = register()
    for seed in SEEDS:
        failure = searched(subject, seed, mix={**PLAIN, "split": 2}).failure
        assert failure is not None and failure.kind == "wrong answers"
    assert searched(subject, mix=PLAIN).outcome().startswith("a failure is rarer")


def test_a_trace_names_answers_and_members_and_folds_the_generated_code() -> None:
    shared = ring(one_thread=())
    failure = searched(shared, races=False, executions=20_000).failure
    assert failure is not None
    text = failure.describe(shared)
    assert "Ring.tail -> 0 relaxed  ring.hpp:" in text
    assert "< True" in text and "< status" not in text
    plain = ring(one_thread=(), model=None)
    raced = searched(plain, executions=20_000).failure
    assert raced is not None and raced.kind == "data race"
    assert "pml_" not in raced.describe(plain) and "signatures.h" not in raced.describe(plain)


def test_a_race_with_a_release_of_memory_has_no_bytes_there() -> None:
    raw = {
        "kind": "data race", "thread": 1, "other_thread": 0, "address": 0, "op": "free",
        "width": 8, "other_op": "read", "other_width": 1,
    }  # fmt: skip
    assert sentence(raw) == (
        "thread 1: release of the memory, unordered with thread 0: read of 1 byte"
    )


# Answers ----------------------------------------------------------------------------------------


POPS: dict[str, Any] = {
    "pop": "bool pop(int& value)",
    "pop_untyped": "pop(int&)",
    "poll": "std::optional<int> poll()",
    "poll_untyped": "poll()",
}


def test_answers_in_a_trace() -> None:
    texts = [answer_text(status, 7) for status in range(5)]
    assert texts == ["None", "7", "True", "(7, ...)", "(7, ...)"]


def test_an_empty_answer_is_none() -> None:
    subject = ring(**POPS, take=("int take()", {-1: None}), one_thread=(), model=None)
    instance = subject.create()
    for name in POPS:
        assert instance.call(name).status == 0
        assert instance.call("push", 3).words[0] == 1
        assert instance.call(name) == (1, (3, 0, 0, 0))
    assert value_of(instance.call("take"), {-1: None}) is None
    instance.call("push", 4)
    assert value_of(instance.call("take"), {-1: None}) == 4


def test_answers_have_the_meaning_that_their_operation_says() -> None:
    assert value_of((2, (1, 0, 0, 0)), None) is True
    assert value_of((5, (0, 7, 0, 0)), None) == (0, 7)
    assert value_of((5, (0, 7, 0, 0)), {-11: None}) == 7
    assert value_of((5, (-11, 0, 0, 0)), {-11: None}) is None
    assert value_of((6, (0, 7, 8, 0)), {-11: None}) == (7, 8)


def test_answers_of_c() -> None:
    subject = stack(top="void* stack_top(self)", model=None)
    instance = subject.create()
    assert instance.call("top").status == 0
    assert instance.call("pop").words[0] == -11
    instance.call("push", 5)
    assert instance.call("top").words[0] == 5
    assert instance.call("pop") == (5, (0, 5, 0, 0))
    (drawn,) = subject.operation("push").arguments
    assert drawn == ("value", 5, 6)


def test_a_stale_answer_names_its_remedies() -> None:
    failure = searched(ring(criterion="linearizable")).failure
    assert failure is not None
    assert failure.message.endswith("mode='sc' excludes and criterion='sequential' allows")
    assert searched(ring(criterion="linearizable"), mode="sc").failure is None


def test_exceptions_of_a_cython_class() -> None:
    subject = register()
    found = searched(subject, mix={"small": 1, "write": 1}).failure
    assert found is not None and found.message == "AssertionError: too large"
    raised = searched(subject, mix={"look": 1, "write": 1}).failure
    assert raised is not None and "register.pyx:" in raised.message
    assert raised.message.endswith("ValueError: above two")


# Everywhere a subject works ---------------------------------------------------------------------


def test_replay_shrink_and_strategies_use_its_judge() -> None:
    subject = stack(flags=["-DUNLOCKED"])
    program = Program.generate(subject, 0, threads=2, operations=4, mix={"push": 2, "pop": 1})
    found = explore(subject, program, executions=4_000, leaks=False).failure
    assert found is not None and found.kind == "wrong answers"
    assert found.replay(subject).exact
    assert "cannot follow any legal order" in found.describe(subject)

    from hypothesis import given, settings

    @settings(derandomize=True, max_examples=20, deadline=None, database=None)
    @given(strategies.interleavings(subject, threads=2, operations=3))
    def no_interleaving_fails(interleaving: Any) -> None:
        interleaving.run(executions=50)

    with pytest.raises(InterleavingFailure):
        no_interleaving_fails()


@pytest.mark.parametrize("structure", [stack, register])
def test_real_threads_and_a_judged_history(structure: Any) -> None:
    subject = structure(checked=False)
    mix = PLAIN if structure is register else None
    program = Program.generate(subject, 1, threads=2, operations=50, mix=mix)
    done, history = record_run(subject.create(threads=2), program)
    assert sum(done.completed) == 50 * 2
    assert subject.judge.message(history, 2) == ""
    assert subject.judge.counts.judged == 1


def test_a_second_call_builds_nothing() -> None:
    first, second = ring(), ring()
    assert first.build_id == second.build_id
    assert first.address == second.address


# Misuse -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modle": "queue"}, r'modle="queue": this is no signature; .* did you mean model=\?'),
        ({"modle": 3}, r"modle=3 is neither an option nor a signature .* did you mean model=\?"),
        ({"push": "push(int, int"}, "this is no signature"),
        ({"push": "push(int,)"}, "a parameter is missing"),
        ({"push": "push(a b, c b)"}, "two parameters have one name"),
        ({"push": "push(int, int, int, int)"}, "at most 3 arguments"),
        ({"push": "push(int in 4..2)"}, r"the range 4\.\.2 of 'value' is empty"),
        ({"pop": "pop(int& v in 1..2)"}, "'v' is written by the method"),
        ({"push": "push(int, int)"}, 'push="push.*" has 2 arguments, and 1 in the model'),
        ({"pusk": "push(int)"}, "the model has no operation 'pusk'"),
        ({"model": "quee"}, "no model 'quee'"),
        ({"model": list}, "is no model: a model has init"),
        ({"criterion": "weak"}, "criterion is 'weak'; it may be: linearizable, sequential"),
        ({"one_thread": ["pusch"]}, "one_thread names 'pusch'; did you mean 'push'?"),
    ],
)
def test_misuse_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ring(**options)


def test_files_and_types_are_named() -> None:
    with pytest.raises(UsageError, match="no file nothing.hpp"):
        operations("nothing.hpp", "Ring", push="push()")
    with pytest.raises(UsageError, match="test_operations.py is no file of C"):
        operations(__file__, "Ring", push="push()")
    with pytest.raises(UsageError, match="self is of no type"):
        operations(HERE / "stack.h", push="stack_push(self, int)")
    with pytest.raises(UsageError, match="0 operations; there should be 1 to 32"):
        operations(HERE / "stack.h", "stack")
    with pytest.raises(UsageError, match="name the cdef class"):
        operations(HERE / "register.pyx", read="int read()")


def test_a_misspelt_method_is_in_the_compilers_words() -> None:
    pattern = r"(?s)no member named .psuh.*object\.psuh\(value\)"
    with pytest.raises(BuildError, match=pattern) as caught:
        ring(push="psuh(int)", pop="pop(int&, int)", model=None)
    of_gcc, of_clang = "candidate expects 1 argument, 2 provided", "too many arguments to function"
    assert of_gcc in str(caught.value) or of_clang in str(caught.value)
    with pytest.raises(BuildError, match="the engine draws integers"):
        operations(
            HERE / "ring.hpp", "Ring<std::optional<int *>, 2>", into=BUILDS,
            push="push(std::optional<int *>)",
        )  # fmt: skip


def test_a_misspelt_function_is_in_the_compilers_words() -> None:
    with pytest.raises(BuildError, match="(?s)stack_psuh.*did you mean.*stack_push"):
        stack(push="stack_psuh(self, int)")


def test_a_misspelt_name_of_cython_is_named() -> None:
    with pytest.raises(BuildError) as caught:
        register(split="bint swop(int, int new)")
    assert str(caught.value).count("Error compiling") == 1
    assert "(<Register>pml_at).swop(value, new)" in str(caught.value)
    assert str(caught.value).endswith("Register has no cdef method 'swop'; did you mean 'swap'?")
