"""The table of processor time by folder at the end of ``make test``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.processor_time import by_folder

BUSY = """
import subprocess, sys

CODE = "import time\\nwhile time.process_time() < 0.5: pass"

def test_idle():
    pass

def test_busy():
    subprocess.run([sys.executable, "-c", CODE], check=True)
"""


def test_folders_are_summed_and_sorted() -> None:
    costs = [("tests/a/test_x.py::f", 1.0), ("tests/b/c/test_y.py::g[::]", 5.0)]
    costs += [("tests/a/b/test_z.py::h", 2.0), ("tests/test_t.py::i", 4.0)]
    assert by_folder(costs) == [
        ("tests/b", 1, 5.0),
        ("tests/test_t.py", 1, 4.0),
        ("tests/a", 2, 3.0),
    ]


def test_children_are_counted_also_in_workers(tmp_path: Path) -> None:
    path = tmp_path / "test_busy.py"
    path.write_text(BUSY)
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "tests.processor_time"]
    command += ["-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"^ *([\d.]+) s +2 tests  all$", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert float(found[1]) >= 0.5


def test_make_prints_it() -> None:
    assert "pytest -n $(WORKERS) -p tests.processor_time" in (ROOT / "Makefile").read_text()
