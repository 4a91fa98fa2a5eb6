"""Where Python threads cannot run under the engine, the command says so in one sentence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests import ROOT
from tests.conftest import HAS_FIBERS

SENTENCE = (
    "Python threads run under the engine on CPython 3.11 to 3.14 with a GIL and on 3.14 without"
)
TEST = "import threading\n\n\ndef test_nothing():\n    threading.Thread(target=int).start()\n"


def test_an_interpreter_without_support_is_named(tmp_path: Path) -> None:
    path = tmp_path / "check_nothing.py"
    path.write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_ml", "check", str(path), "--executions", "10"],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert (SENTENCE in done.stderr) is not HAS_FIBERS, done.stderr
    assert "Traceback" not in done.stderr
