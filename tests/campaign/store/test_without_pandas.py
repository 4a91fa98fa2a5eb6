"""Processes of this package do not import pandas only because pyarrow is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIRST_ARRAY = "import sys, pyarrow as pa; pa.array([1]); print('pandas' in sys.modules)"
HIDDEN = (
    "from pulsar_ml.campaign.without_pandas import arrow_without_pandas; arrow_without_pandas()"
)
TASK = """\
from pulsar_ml.campaign.trial.chunk import Job, TRIAL_LIMITS
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.distributed.tasks import maker_of, work_for
job = Job("run", "build", TrialOptions(), TRIAL_LIMITS)
maker_of(work_for(job, [], "pulsar_ml.suites.registry", maker="builtins:print"), None)"""
SWEEP = """\
import atexit, sys
atexit.register(lambda: print("pandas" in sys.modules, "pyarrow" in sys.modules))
from pulsar_ml.cli import main
main(["sweep", "--runner", "pool", "--suite", "refcount", "--seeds", "1", "--runs", "1", "--json"])
"""


def last_line(program: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[-1]


def test_an_array_of_python_values_imports_no_pandas(tmp_path: Path) -> None:
    assert last_line(FIRST_ARRAY, tmp_path) == "True", "negative control: pyarrow imports it"
    assert last_line(f"{HIDDEN}; {FIRST_ARRAY}", tmp_path) == "False"


def test_pandas_can_be_used_afterwards(tmp_path: Path) -> None:
    program = f"{HIDDEN}; {FIRST_ARRAY}; print(pa.table({{'a': [1]}}).to_pandas()['a'].sum())"
    assert last_line(program, tmp_path) == "1"


def test_tasks_of_executors_import_no_pandas(tmp_path: Path) -> None:
    assert last_line(f"{TASK}; {FIRST_ARRAY}", tmp_path) == "False"


def test_a_sweep_on_the_pool_imports_no_pandas(tmp_path: Path) -> None:
    assert last_line(SWEEP, tmp_path) == "False True"
