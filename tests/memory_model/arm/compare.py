"""Compares what AArch64 shows of a compiled program with what RC11 allows the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.memory_model.arm.a64 import Assembly, Translation, translated
from tests.memory_model.compare import SHOWN
from tests.memory_model.generator import FEATURES, program_of_seed
from tests.memory_model.litmus import CAS, EXCHANGE, LOAD, Litmus, Outcome, describe
from tests.memory_model.models import oracle, rows_of

# The rules of arm.hpp, by bit: coherence, and what orders effects for all threads.
RULES = (
    *("internal", "rfe", "fre", "coe", "lws", "addr", "data", "ctrl; [W]", "addr; po; [W]"),
    *("(addr | data); rfi", "rmw; rfi; [A | Q]", "[A | Q]; po", "po; [L]", "[L]; po; [A]"),
    *("[range([A]; amo; [L])]; po", "dmb.full", "dmb.ld", "dmb.st"),
)


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The outcomes and executions of a program on AArch64 and in RC11.

    Attributes:
        arm: outcomes that Arm shows without load buffering.
        buffering: outcomes that it shows by load buffering: cycles of program order and reads-from.
        c11: outcomes that RC11 allows; it has no load buffering.
        engine: those of them that the engine has, which asks more than RC11 of seq_cst.
        allowed: executions that Arm allows, ``buffered`` of them with load buffering.
        graphs: executions that RC11 allows.
        forbidden: executions that Arm allows, without load buffering, and RC11 does not.
    """

    program: Litmus
    arm: set[Outcome]
    buffering: set[Outcome]
    c11: set[Outcome]
    engine: set[Outcome]
    allowed: int
    buffered: int
    graphs: int
    forbidden: int

    @property
    def agrees(self) -> bool:
        """True where RC11 has every execution of Arm that is no load buffering."""
        return self.forbidden == 0

    @property
    def left_out(self) -> set[Outcome]:
        """Return the outcomes of Arm, without load buffering, that the engine leaves out."""
        return self.arm - self.engine

    @property
    def missed(self) -> set[Outcome]:
        """Return the outcomes that only load buffering has, which RC11 leaves out."""
        return self.buffering - self.c11

    def __str__(self) -> str:
        lines = [str(self.program)]
        lines += [
            f"outcome on Arm that RC11 forbids: {describe(self.program, outcome)}"
            for outcome in sorted(self.arm - self.c11)[:SHOWN]
        ]
        if not self.agrees:
            lines.append(f"RC11 forbids {self.forbidden:,} executions of Arm")
        return "\n".join(lines)


def judged(assembly: Assembly, *, omitted: str = "") -> Verdicts:
    """Judge every execution of a program by both models; Arm's may be without one of RULES."""
    *outcomes, numbers = oracle().judge_arm(
        rows_of(assembly.program),
        assembly.properties,
        omitted=1 << RULES.index(omitted) if omitted else 0,
    )
    return Verdicts(assembly.program, *outcomes, *numbers)


def compared(program: Litmus, by: Translation) -> Verdicts:
    """Compare RC11 with Arm, which runs the program as a translation compiles it."""
    return judged(translated(program, by))


def shrunk(found: Verdicts, by: Translation) -> Verdicts:
    """Return the smallest disagreement that taking away operations and orders reaches."""
    while True:
        for program in found.program.smaller():
            small = compared(program, by)
            if not small.agrees:
                found = small
                break
        else:
            return found


def arm_program_of_seed(seed: int) -> Litmus:
    """Return the program of a seed: accesses and fences only.

    The mutex, waits and threads are calls of libc, whose instructions are not the project's.
    """
    return program_of_seed(len(FEATURES) * seed)


def reads_of(program: Litmus, outcome: Outcome) -> tuple[tuple[int, ...], ...]:
    """Return what the reads of each thread returned, in order."""
    return tuple(
        tuple(
            outcome[t] >> 4 * i & 15
            for i, call in enumerate(calls)
            if call.kind in (LOAD, EXCHANGE, CAS)
        )
        for t, calls in enumerate(program.threads)
    )


def finals_of(outcome: Outcome) -> tuple[int, ...]:
    return tuple(outcome[4] >> 4 * cell & 15 for cell in range(3))


def shows(
    program: Litmus,
    outcomes: Iterable[Outcome],
    reads: tuple[tuple[int, ...], ...],
    finals: tuple[int, ...] = (),
) -> bool:
    """True if one of the outcomes has these reads, and these final values of the first cells."""
    return any(
        reads_of(program, outcome) == reads and finals_of(outcome)[: len(finals)] == finals
        for outcome in outcomes
    )
