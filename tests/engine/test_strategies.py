"""One table of strategies: a new one takes a row and a file in C, and no search is a sample."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from pulsar_ml.campaign.local.exploring import SuiteExploration
from pulsar_ml.campaign.trial import controlled
from pulsar_ml.harness.engine import OFFERED, SAMPLERS, SEARCHES, STRATEGIES
from pulsar_ml.harness.search.explore import explore
from pulsar_ml.harness.search.interleave import interleave
from tests import ROOT
from tests.engine.programs.build_programs import program_of, programs

ENGINE = Path("pulsar_ml/harness/engine")

LAST = """/* The thread of the highest number that can go on. */
static Thread *last_choose(Thread *t, uint64_t mask)
{
    (void)t;
    return &E.threads[63 - __builtin_clzll(mask)];
}

static const Strategy LAST = {
    {"last", "the thread of the highest number", STRATEGY_SAMPLES}, .choose = last_choose,
};
"""

# Runs with the engine at the path given in place of the product's.
CHECK = """
import importlib.abc, importlib.util, os, sys
class Other(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "pulsar_ml.harness.engine._engine":
            return importlib.util.spec_from_file_location(name, sys.argv[1])
sys.meta_path.insert(0, Other())
from pulsar_ml.harness.engine import OFFERED, SAMPLERS, SEARCHES, STRATEGIES, _engine
assert _engine.__file__ == sys.argv[1], _engine.__file__
assert STRATEGIES["last"] == "the thread of the highest number"
assert "last" in SAMPLERS and "last" in OFFERED and "last" not in SEARCHES
from pulsar_ml.campaign.trial.controlled import check_options
from pulsar_ml.campaign.trial.trial import TrialOptions
check_options(TrialOptions(strategy="last"))
from pulsar_ml.cli.find.explore import command
(option,) = [each for each in command.params if each.name == "strategy"]
assert "last" in option.type.choices
from pulsar_ml.harness.search.explore import explore
from tests.engine.programs.build_programs import explorer, program_of, programs
done = explore(programs().SUBJECTS["counter"], program_of("counter"), executions=50, strategy="last")
assert done.failure is None and done.statistics["classes"] == 1 and done.residual_risk == 3 / 50
runs = explorer("counter", strategy="last")
runs.run(0, 1)
assert runs.used()[0] == "last"
print("a row is all it takes")
"""


def engine_with_a_row(folder: Path) -> Path:
    """The engine of this tree with one more strategy, compiled into ``folder``."""
    shutil.copytree(ROOT / ENGINE, folder / ENGINE, ignore=shutil.ignore_patterns("*.so"))
    schedule = folder / ENGINE / "schedule"
    (schedule / "strategies" / "last.c").write_text(LAST)
    table = schedule / "strategies.c"
    text = table.read_text()
    rows = "static const Strategy *const STRATEGIES[] = {\n"
    assert text.count(rows) == 1
    include = f'#include "{ENGINE / "schedule/strategies/last.c"}"\n'
    table.write_text(text.replace(rows, f"{include}{rows}    &LAST,\n"))
    face = folder / ENGINE / "_engine.c"  # as Cython wrote it for the engine of this tree
    result = folder / f"_engine{sysconfig.get_config_var('EXT_SUFFIX')}"
    include_folders = (folder, ROOT, sysconfig.get_paths()["include"])
    subprocess.run(
        [
            *("gcc", "-shared", "-fPIC", "-O0", "-std=gnu11", "-fno-strict-aliasing", "-w"),
            *("-fvisibility=hidden", "-mcx16" if sys.platform == "linux" else "-fPIC"),
            *(f"-I{path}" for path in include_folders),
            *(str(face), str(folder / ENGINE / "engine.c"), "-o", str(result), "-lpthread"),
        ],
        check=True,
        timeout=900,
    )
    return result


def test_a_new_row_is_all_it_takes(tmp_path: Path) -> None:
    result = engine_with_a_row(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(result)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "a row is all it takes" in done.stdout


def test_every_row_has_a_sentence_and_one_kind() -> None:
    assert all(name.isidentifier() and sentence for name, sentence in STRATEGIES.items())
    assert not set(SAMPLERS) & set(SEARCHES)
    assert set(STRATEGIES) - set(SAMPLERS) - set(SEARCHES) == {"replay"}
    assert vars(controlled)["OFFERED"] == OFFERED == tuple(n for n in STRATEGIES if n != "replay")


@pytest.mark.parametrize("strategy", SEARCHES)
def test_an_unfinished_search_is_no_sample(strategy: str) -> None:
    subject, program = programs().SUBJECTS["increments_5"], program_of("increments_5")
    done = explore(subject, program, executions=30, strategy=strategy, bound=40, mode="sc")
    assert done.failure is None and not done.exhausted
    assert done.unseen_mass is None and done.residual_risk is None
    total = SuiteExploration("increments_5", strategy)
    total.add(done)
    text = "\n".join(total.lines())
    assert "unseen" not in text and "rarer than" not in text and "95 %" not in text
    assert "the search of 1 program did not end; its executions are no" in text
    found = interleave(
        subject, program=program, executions=30, strategy=strategy, bound=40, mode="sc"
    )
    assert found.residual_risk is None and "rarer than" not in found.describe()


def test_a_sample_keeps_its_claims() -> None:
    subject, program = programs().SUBJECTS["increments_5"], program_of("increments_5")
    done = explore(subject, program, executions=300, mode="sc")
    assert done.residual_risk == 3 / 300 and done.unseen_mass is not None
    total = SuiteExploration("increments_5", "portfolio")
    total.add(done)
    text = "\n".join(total.lines())
    assert "unseen mass about" in text and "rarer than 1 in 100 executions" in text
