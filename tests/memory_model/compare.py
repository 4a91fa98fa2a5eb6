"""Compares the engine with the models, program by program, and shrinks a disagreement."""

from __future__ import annotations

from dataclasses import dataclass

from tests.memory_model import operational, rc11
from tests.memory_model.engine import explored
from tests.memory_model.litmus import Litmus, Outcome, random_program

MODES = ("sc", "tso", "c11")
EXECUTIONS = 300_000  # a search that does not end within these proves nothing missing
SHAPES = ((2, 4), (2, 5), (2, 6), (3, 5), (3, 6), (4, 6))  # threads, operations


@dataclass(frozen=True, slots=True)
class Comparison:
    """The engine's and a model's outcomes of a program.

    Attributes:
        forbidden: outcomes of the engine that the model does not allow.
        missing: outcomes that the model allows and an exhausted search did not reach.
        classes, graphs: numbers of classes of executions and of execution graphs; equal when the
            search was exhausted and the model has graphs (c11).
    """

    program: Litmus
    mode: str
    forbidden: set[Outcome]
    missing: set[Outcome]
    executions: int
    exhausted: bool
    classes: int
    graphs: int

    @property
    def agrees(self) -> bool:
        return not (self.forbidden or self.missing or self.classes != self.graphs)

    def __str__(self) -> str:
        lines = [f"mode {self.mode}, {self.executions:,} executions", str(self.program)]
        lines += [f"forbidden outcome: {outcome}" for outcome in sorted(self.forbidden)[:4]]
        lines += [f"missing outcome: {outcome}" for outcome in sorted(self.missing)[:4]]
        if self.classes != self.graphs:
            lines.append(f"{self.classes} classes of executions, {self.graphs} execution graphs")
        return "\n".join(lines)


def program_of_seed(seed: int) -> Litmus:
    """Return the program of a seed; every fifth has threads that hold the mutex."""
    threads, operations = SHAPES[seed % len(SHAPES)]
    return random_program(seed, threads=threads, operations=operations, locks=seed % 5 == 4)


def compare(program: Litmus, mode: str) -> Comparison:
    """Run a program exhaustively in the engine and through the model of a mode."""
    result = explored(program, mode=mode, strategy="preemptions", executions=EXECUTIONS)
    graphs = result.classes
    if mode == "c11":
        complete = rc11.graphs(program, strengthened=True)
        allowed = {rc11.outcome_of(program, graph) for graph in complete}
        if result.exhausted and not has_locks(program):
            graphs = len(complete)
    else:
        allowed = operational.outcomes(program, buffered=mode == "tso")
    missing = allowed - result.outcomes if result.exhausted else set()
    return Comparison(
        program,
        mode,
        result.outcomes - allowed,
        missing,
        result.executions,
        result.exhausted,
        result.classes,
        graphs,
    )


def has_locks(program: Litmus) -> bool:
    return any(call.kind == "lock" for calls in program.threads for call in calls)


def shrunk(found: Comparison) -> Comparison:
    """Return the smallest disagreement that taking away operations and orders reaches."""
    while True:
        for program in found.program.smaller():
            small = compare(program, found.mode)
            if not small.agrees:
                found = small
                break
        else:
            return found
