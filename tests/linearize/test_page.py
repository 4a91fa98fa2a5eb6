"""docs/linearizability.md: its example runs and prints what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pulsar_ml.harness.models import MODELS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "linearizability.md").read_text()
EXAMPLES = ROOT / "docs" / "examples"


def test_the_model_of_the_page_is_the_file() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code in (EXAMPLES / "account.py").read_text()


def test_the_command_prints_what_the_page_shows() -> None:
    (shown,) = re.findall(r"```\n\$ python (-m pulsar_ml linearize .*?)\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, *shown[0].split()],
        cwd=EXAMPLES, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == shown[1], done.stderr
    assert done.returncode == 1


def test_the_page_names_the_models_that_ship() -> None:
    assert all(f"`{name}`" in PAGE for name in MODELS)
