"""Compares RC11 with AArch64 on many programs and counts what was compared."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.memory_model.arm.a64 import TARGETS, translated, translation
from tests.memory_model.arm.compare import arm_program_of_seed, judged, shrunk
from tests.memory_model.sweep import MOST_KEPT


@dataclass(slots=True)
class ArmCounts:
    """The numbers of a sweep; ``found`` are the texts of the first disagreements.

    Attributes:
        translations: programs, once for each of their different translations.
        executions: executions that Arm allows, ``buffered`` of them with load buffering.
        missed: translations with an outcome that only load buffering has.
        left_out: translations with another outcome that the engine's stronger seq_cst leaves out.
        stronger: translations that do not show every outcome of RC11.
    """

    programs: int = 0
    translations: int = 0
    executions: int = 0
    buffered: int = 0
    missed: int = 0
    left_out: int = 0
    stronger: int = 0
    disagreements: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, other: ArmCounts) -> None:
        self.programs += other.programs
        self.translations += other.translations
        self.executions += other.executions
        self.buffered += other.buffered
        self.missed += other.missed
        self.left_out += other.left_out
        self.stronger += other.stronger
        self.disagreements += other.disagreements
        self.found = (self.found + other.found)[:MOST_KEPT]

    def __str__(self) -> str:
        return (
            f"{self.programs:,} programs in {self.translations:,} translations for "
            f"{', '.join(TARGETS)}: {self.executions:,} executions on Arm, {self.buffered:,} with "
            f"load buffering; {self.missed:,} translations with outcomes of load buffering only, "
            f"{self.left_out:,} with others that the engine leaves out, {self.stronger:,} without "
            f"some outcome of RC11; {self.disagreements:,} disagreements"
        )


def work(piece: tuple[range, int]) -> ArmCounts:
    """Compare the programs of some seeds, once for each of their translations."""
    counts = ArmCounts()
    for seed in piece[0]:
        program = arm_program_of_seed(seed)
        counts.programs += 1
        for assembly, target in {
            translated(program, translation(target)): target for target in TARGETS
        }.items():
            found = judged(assembly)
            counts.translations += 1
            counts.executions += found.allowed
            counts.buffered += found.buffered
            counts.missed += bool(found.missed)
            counts.left_out += bool(found.left_out)
            counts.stronger += bool(found.c11 - found.arm)
            if not found.agrees:
                counts.disagreements += 1
                if len(counts.found) < MOST_KEPT:
                    small = shrunk(found, translation(target))
                    counts.found.append(f"program {seed}, {target}\n{small}")
    return counts
