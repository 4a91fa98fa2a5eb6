"""Each seeded defect of the engine is found by the programs that the tests compare."""

from __future__ import annotations

import json
import subprocess
import sys

from tests import ROOT
from tests.memory_model.defects.variant import NAMES
from tests.memory_model.test_memory_model import EXECUTIONS, SEEDS


def test_random_programs_find_each_defect_of_the_engine() -> None:
    from tests.memory_model.defects import __main__ as command

    assert (command.SEEDS, command.EXECUTIONS) == (SEEDS, EXECUTIONS)
    done = subprocess.run(
        [sys.executable, "-m", "tests.memory_model.defects"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"", *NAMES}
    assert found.pop("") == "", "the copy without a defect agrees"
    missed = [name for name, text in found.items() if not text]
    assert not missed, f"no program notices: {', '.join(missed)}"
