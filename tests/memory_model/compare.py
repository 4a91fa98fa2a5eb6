"""Compares the engine with the models, program by program, and shrinks a disagreement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulsar_ml.harness.engine import SAMPLERS
from pulsar_ml.harness.subjects.program import Program
from tests.memory_model.engine import Explored, explored, program_of
from tests.memory_model.generator import FEATURES
from tests.memory_model.litmus import (
    LOCK_FOR,
    LOCK_UNTIL,
    TIMED_WAIT,
    WAIT,
    Litmus,
    Outcome,
    describe,
)
from tests.memory_model.models import allowed

EXECUTIONS = 300_000  # a search that does not end within these proves nothing missing
SAMPLES = 20  # executions of each sampler
SHOWN = 4  # outcomes
FAULTY = ("weak_failure", "no_memory")
REDUCED = ("sc", "tso", "c11")  # modes whose searches strategy "reduce" makes smaller
EXACT = ("sc", "tso")  # to one execution of each class
INEXACT = "timeout"  # unless this fault may happen


@dataclass(frozen=True, slots=True)
class Comparison:
    """The engine's and a model's outcomes of a program.

    Attributes:
        forbidden: outcomes of the engine that the model does not allow.
        missing: outcomes that the model allows and an exhausted search did not reach.
        classes, graphs: numbers of classes of executions and of execution graphs; equal when the
            search was exhausted and the model has graphs (c11).
        samples: executions of samplers, whose outcomes count as the search's.
        reduced: what the search with partial-order reduction had other than the whole search: ""
            when both had the same classes and outcomes.
        failure: the text of a failure of the engine other than a deadlock, or "".
    """

    program: Litmus
    mode: str
    faults: tuple[str, ...]
    forbidden: set[Outcome]
    missing: set[Outcome]
    executions: int
    samples: int
    exhausted: bool
    classes: int
    graphs: int
    failure: str
    reduced: str = ""

    @property
    def agrees(self) -> bool:
        counted = self.classes == self.graphs
        wrong = self.forbidden or self.missing or self.failure or self.reduced
        return counted and not wrong

    def __str__(self) -> str:
        head = f"mode {self.mode}, {self.executions:,} executions, {self.samples:,} samples"
        if self.faults:
            head += f", faults {', '.join(self.faults)}"
        lines = [head, str(self.program)]
        for name, outcomes in (("forbidden", self.forbidden), ("missing", self.missing)):
            lines += [
                f"{name} outcome: {describe(self.program, outcome)}"
                for outcome in sorted(outcomes)[:SHOWN]
            ]
        if self.reduced:
            lines.append(self.reduced)
        if self.failure:
            lines.append(f"the engine reports {self.failure}")
        if self.classes != self.graphs:
            lines.append(f"{self.classes} classes of executions, {self.graphs} execution graphs")
        return "\n".join(lines)


def faults_of_seed(seed: int, program: Litmus) -> tuple[str, ...]:
    """Return the faults with which the program of a seed runs: they matter to waits only."""
    waits, timed = program.has(WAIT, TIMED_WAIT), program.has(TIMED_WAIT, LOCK_UNTIL, LOCK_FOR)
    faults = ((), (), ("timeout",), ("spurious",), ("spurious", "timeout"))
    possible = {"spurious": waits, "timeout": timed}
    return tuple(fault for fault in faults[seed // len(FEATURES) % 5] if possible[fault])


def compare(
    program: Litmus,
    mode: str,
    *,
    faults: tuple[str, ...] = (),
    samplers: Sequence[str] = (),
    executions: int = EXECUTIONS,
    seed: int = 0,
    defect: str = "",
) -> Comparison:
    """Run a program in the engine, exhaustively and by samplers, and through the model of a mode.

    ``defect`` makes a rule of the model wrong.
    """
    model = allowed(program, mode, faults=faults, defect=defect)
    calls = program_of(program)
    result = explored(
        program, calls, mode=mode, strategy="enumerate", executions=executions, faults=faults
    )
    seen = set(result.outcomes)
    samples, failure = 0, result.failure
    for sampler in samplers:
        sampled = explored(
            program,
            calls,
            mode=mode,
            strategy=sampler,
            executions=SAMPLES,
            faults=faults,
            seed=seed,
        )
        samples += sampled.executions
        failure = failure or sampled.failure
        seen |= sampled.outcomes
    counted = mode == "c11" and result.exhausted
    return Comparison(
        program,
        mode,
        faults,
        seen - model.outcomes,
        model.outcomes - result.outcomes if result.exhausted else set(),
        result.executions,
        samples,
        result.exhausted,
        result.classes,
        model.graphs if counted else result.classes,
        failure,
        reduction_of(program, calls, result, mode, faults),
    )


def reduction_of(
    program: Litmus,
    calls: Program,
    whole: Explored,
    mode: str,
    faults: tuple[str, ...],
    faulty: bool = False,
) -> str:
    """Run the search with reduction where the whole search ended; describe the first difference."""
    if mode not in REDUCED or not whole.exhausted:
        return ""
    most = 2 * whole.executions + 10
    found = explored(
        program,
        calls,
        mode=mode,
        strategy="exhaust",
        executions=most,
        faults=faults,
        faulty=faulty,
    )
    if found.failure or not found.exhausted:
        return f"the reduced search did not end within {most:,} executions: {found.failure}"
    if found.hashes != whole.hashes:
        missing, new = len(whole.hashes - found.hashes), len(found.hashes - whole.hashes)
        return f"the reduced search misses {missing} classes and has {new} that are none"
    if found.outcomes != whole.outcomes:
        return f"the reduced search misses {len(whole.outcomes - found.outcomes)} outcomes"
    number, exact = found.executions - found.blocked, mode in EXACT and INEXACT not in faults
    if exact and not found.unreduced and number != found.classes:
        return f"the reduced search makes {number} whole executions of {found.classes} classes"
    return ""


def compare_faulty(program: Litmus, mode: str, executions: int = EXECUTIONS) -> tuple[bool, str]:
    """Compare the searches of a program whose exchanges and allocations may fail.

    Returns whether the whole search ended, and the difference of the reduced one, or "".
    """
    calls = program_of(program)
    whole = explored(
        program,
        calls,
        mode=mode,
        strategy="enumerate",
        executions=executions,
        faults=FAULTY,
        faulty=True,
    )
    return whole.exhausted, reduction_of(program, calls, whole, mode, FAULTY, faulty=True)


def compare_bounded(
    program: Litmus, mode: str, bound: int, executions: int = EXECUTIONS
) -> tuple[tuple[Explored, Explored] | None, str]:
    """Compare the searches of the classes that ``bound`` preemptions reach.

    Returns the search of every schedule and the one with reduction, or None where one of them did
    not end or the program is not reduced; and how the latter falls short, or "". It may have a
    class more, where it counts a wait that the other search does not need as one.
    """
    calls = program_of(program)
    whole, found = (
        explored(program, calls, mode=mode, strategy=strategy, executions=executions, bound=bound)
        for strategy in ("preemptions", "reduce")
    )
    if executions in {whole.executions, found.executions} or found.unreduced:
        return None, ""
    if missing := len(whole.hashes - found.hashes):
        return (whole, found), f"{missing} classes within {bound} preemptions are missing"
    if missing := len(whole.outcomes - found.outcomes):
        return (whole, found), f"{missing} outcomes within {bound} preemptions are missing"
    return (whole, found), ""


def shrunk(found: Comparison, *, defect: str = "") -> Comparison:
    """Return the smallest disagreement that taking away operations and orders reaches."""
    while True:
        for program in found.program.smaller():
            small = compare(
                program, found.mode, faults=found.faults, samplers=SAMPLERS, defect=defect
            )
            if not small.agrees:
                found = small
                break
        else:
            return found
