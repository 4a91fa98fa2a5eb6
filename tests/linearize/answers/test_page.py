"""docs/linearizability.md: its example runs and prints the output that the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from pulsar_ml.harness.histories.files import load_history
from pulsar_ml.harness.histories.history import CRASHED, RETURNED
from pulsar_ml.harness.linearize import LEGAL, check
from pulsar_ml.harness.models import MODELS, Register
from tests import ROOT

PAGE = (ROOT / "docs" / "linearizability.md").read_text()
EXAMPLES = ROOT / "docs" / "examples"


def test_the_model_of_the_page_is_the_file() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert code in (EXAMPLES / "account.py").read_text()


def test_the_command_prints_what_the_page_shows() -> None:
    (shown,) = re.findall(r"```\n\$ pulsar-ml (linearize .*?)\n(.*?)```", PAGE, re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_ml", *shown[0].split()],
        cwd=EXAMPLES, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == shown[1], done.stderr
    assert done.returncode == 1


def test_the_page_names_the_models_that_ship_with_their_operations() -> None:
    table = PAGE.split("| model | operations |\n| --- | --- |\n")[1].split("\n\n")[0]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.*) \|$", table, re.MULTILINE))
    assert list(rows) == list(MODELS)
    for name, operations in rows.items():
        shown = {
            operation: len(re.findall(r"\w+", arguments))
            for operation, arguments in re.findall(r"`(\w+)\((.*?)\)`", operations)
        }
        before = MODELS["register"]().operations if operations.startswith("the same, and ") else {}
        assert {**before, **shown} == MODELS[name]().operations


def test_the_file_of_the_page_is_a_history(tmp_path: Path) -> None:
    (lines,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "history.jsonl").write_text(lines)
    history = load_history(tmp_path / "history.jsonl")
    assert [str(history.call(row)) for row in range(3)] == [
        "write(1)",
        "read() -> 1",
        "write(2) -> ?",
    ]
    assert history.records["ending"].tolist() == [RETURNED, RETURNED, CRASHED]
    assert check(history, Register()).answer == LEGAL
