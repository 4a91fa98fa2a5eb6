"""``python -m tests.memory_model.defects``: the comparison with an engine that has defects.

Prints a JSON object: for each defect, and for none (""), the first disagreement, or "".
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

from tests.memory_model.defects.variant import DEFECTS, MODULE, VARIABLE, Defect, compiled

# Seeds of the programs that tests compare, see tests/memory_model/test_memory_model.py.
SEEDS = (*range(2_000), 2_024, 2_964)
EXECUTIONS = 5_000
RIGHT = 100  # programs that have to agree without a defect


class Variant:
    """Loads the copy with defects where the engine is imported."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None
        return importlib.util.spec_from_file_location(name, compiled())


def first_disagreement(defect: Defect | None) -> str:
    """Compare program after program as the tests do, until one disagrees."""
    from tests.memory_model.compare import compare, compare_bounded, compare_faulty, faults_of_seed
    from tests.memory_model.generator import program_of_seed
    from tests.memory_model.models import MODES
    from tests.memory_model.programs import TEXTBOOK

    drawn = [(seed, program_of_seed(seed)) for seed in (SEEDS if defect else SEEDS[:RIGHT])]
    for seed, program in (*drawn, *((0, program) for program in TEXTBOOK)):
        if defect and not program.has(*defect.kinds):
            continue
        for mode in (defect.mode,) if defect else MODES:
            if defect and defect.faulty:
                if difference := compare_faulty(program, mode, EXECUTIONS)[1]:
                    return f"program {seed}\n{difference}"
                continue
            if defect and defect.bounded:
                for bound in (0, 1):
                    if difference := compare_bounded(program, mode, bound, EXECUTIONS)[1]:
                        return f"program {seed}\n{difference}"
                continue
            faults = faults_of_seed(seed, program)
            found = compare(program, mode, faults=faults, executions=EXECUTIONS, seed=seed)
            if not found.agrees:
                return f"program {seed}\n{found}"
    return ""


def main() -> None:
    sys.meta_path.insert(0, Variant)
    found = {}
    for number, defect in enumerate((None, *DEFECTS)):
        os.environ[VARIABLE] = str(number)
        found[defect.name if defect else ""] = first_disagreement(defect)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
