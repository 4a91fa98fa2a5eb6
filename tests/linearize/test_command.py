"""The ``linearize`` command, run like a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.cli.find.numpy_alone import VARIABLE
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.histories.history import Operation, history_of
from tests import ROOT
from tests.linearize.histories import hard_queue

LEGAL = [Operation(0, "write", (1,), None, 0, 1), Operation(1, "read", (), 1, 2, 3)]
ILLEGAL = [*LEGAL, Operation(1, "read", (), None, 4, 5)]
HARD = hard_queue()


def run(tmp_path: Path, operations: list[Operation], *arguments: str) -> tuple[int, str]:
    path = tmp_path / "history.jsonl"
    save_history(history_of(operations), path)
    done = CliRunner().invoke(main, ["linearize", str(path), *arguments])
    return done.exit_code, done.output


def test_a_legal_history(tmp_path: Path) -> None:
    code, output = run(tmp_path, LEGAL, "--model", "register")
    assert (code, output.splitlines()[0][:20]) == (0, "legal: linearizable ")


def test_an_illegal_history_is_shown_in_lanes(tmp_path: Path) -> None:
    code, output = run(tmp_path, ILLEGAL, "--model", "register")
    assert code == 1
    assert "illegal: not linearizable" in output
    assert "sequentially consistent: illegal" in output
    # The result of a read is shown even if it is None.
    assert (
        "2 operations can be put in order; then nothing leads to operation 2 (line 4), "
        "read() -> None\n" in output
    )
    assert "  that order: write(1); read() -> 1\n  it leads to the state 1\n" in output
    assert output.splitlines()[-2:] == [
        "thread 0  |- write(1) -|",
        "thread 1                *- read() -> None -*",
    ]


def test_unknown_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    code, output = run(tmp_path, HARD, "--model", "queue", "--steps", "500")
    assert code == 5
    assert output.startswith("unknown: out of steps")
    # Advice.
    assert "more --steps may help" in output
    assert "up to 14 operations overlapped, and 0 of 32 did not return" in output
    assert "histories in which each value is put only once have a quick answer" in output


@pytest.mark.parametrize("most", [200, 600, 5000])
def test_the_steps_of_all_searches_are_within_their_bound(most: int, tmp_path: Path) -> None:
    """A monitor runs between two searches, which share the limit of steps."""
    code, output = run(tmp_path, HARD, "--model", "queue", "--steps", str(most))
    steps = int(re.findall(r"after (\d+) steps", output)[0])
    assert (code, 0 < steps <= most + 2) == (5, True), output


RAISING = """
class Late:
    calls = 0

    def init(self):
        return 0

    def step(self, state, call):
        if call.name == "read" and "WHEN" == "at once":
            raise KeyError(call.name)
        return [state]

    def describe(self, call):
        raise ZeroDivisionError("WHEN")

    def pure(self, call):
        return True
"""


@pytest.mark.parametrize("when", ["at once", "in the report"])
def test_a_model_that_raises_is_no_verdict(when: str, tmp_path: Path) -> None:
    model = tmp_path / "late.py"
    model.write_text(RAISING.replace("WHEN", when).replace("return [state]", "return []"))
    code, output = run(tmp_path, LEGAL, "--model", f"{model}:Late")
    assert code == 2, output
    raised = "KeyError: 'read'" if when == "at once" else "ZeroDivisionError: in the report"
    assert f"cannot be used: {'step(), for read()' if when == 'at once' else 'it'}" in output
    assert f"raised {raised} ({model}:" in output


def test_an_interruption_is_no_verdict(tmp_path: Path) -> None:
    model = tmp_path / "interrupted.py"
    model.write_text(
        RAISING.replace("WHEN", "at once").replace(
            "raise KeyError(call.name)", "raise KeyboardInterrupt"
        )
    )
    code, output = run(tmp_path, LEGAL, "--model", f"{model}:Late")
    assert (code, output) == (130, "Interrupted\n")


def test_an_answer_without_its_explanation(tmp_path: Path) -> None:
    code, output = run(tmp_path, ILLEGAL, "--model", "register", "--no-explain")
    assert (code, output.splitlines()[0][:28]) == (1, "illegal: not linearizable (3")
    assert "themselves" not in output and "sequentially" not in output


@pytest.mark.parametrize(("initial", "code"), [("7", 0), ("8", 1), ('"7"', 1), ("null", 1)])
def test_the_first_value_of_a_register(initial: str, code: int, tmp_path: Path) -> None:
    first = [Operation(0, "read", (), 7, 0, 1)]
    for model in ("register", "cas-register"):
        assert run(tmp_path, first, "--model", model, "--initial", initial)[0] == code
    if initial in "78":
        assert run(tmp_path, first, "--model", "counter", "--initial", initial)[0] == code


@pytest.mark.parametrize(
    ("model", "initial", "sentence"),
    [
        ("queue", "7", "the model queue has no first value that can be given"),
        ("register", "seven", "--initial seven is not JSON"),
        ("register", '{"a": 1}', "is no value of a history"),
        ("register", "[" * 100_000, "is not JSON (nested too deeply)"),
        ("counter", "null", "a counter begins with an integer"),
    ],
)
def test_a_first_value_that_is_none(
    model: str, initial: str, sentence: str, tmp_path: Path
) -> None:
    code, output = run(tmp_path, LEGAL, "--model", model, "--initial", initial)
    assert code == 2 and sentence in output


def test_time_that_is_over(tmp_path: Path) -> None:
    code, output = run(tmp_path, HARD, "--model", "queue", "--timeout", "1e-9")
    assert (code, output[:20]) == (5, "unknown: out of time")
    assert run(tmp_path, HARD, "--model", "queue", "--timeout", "0")[0] == 2


def test_the_verdict_as_json(tmp_path: Path) -> None:
    code, output = run(tmp_path, ILLEGAL, "--model", "register", "--json")
    assert code == 1
    verdict = json.loads(output)
    assert (verdict["answer"], verdict["core"], verdict["blocked"]) == ("illegal", [0, 2], 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--model", "heap"], "there is no model 'heap'"),
        (["--model", "stack"], "the model Stack has no operation 'write'; it has: push, pop"),
        ([], "Missing option '--model'"),
        (["--model", "register", "--keyed"], "operation 0 (line 2), write(1), has 1 argument; "),
        (["--model", "absent.py:Model"], "there is no file absent.py to have a model"),
    ],
)
def test_what_is_given_wrongly(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    code, output = run(tmp_path, LEGAL, *arguments)
    assert code == 2
    assert sentence in output


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["linearize", str(tmp_path / "no.jsonl"), "--model", "register"]
    )
    assert done.exit_code == 2
    assert "cannot be read" in done.output


def test_a_model_of_the_users_in_the_current_directory(tmp_path: Path) -> None:
    save_history(history_of(LEGAL), tmp_path / "history.parquet")
    (tmp_path / "mine.py").write_text(
        "from pulsar_ml.harness.models import Register\n\n\nclass Mine(Register):\n    pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_ml", "linearize", "history.parquet", "--model", "mine:Mine"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


# Modules that a small history does not need; each takes longer to import than its check.
NOT_NEEDED = (
    "asyncio", "decimal", "edn_format", "jinja2", "multiprocessing", "numpy.ma", "psutil",
    "pulsar_ml.campaign", "pulsar_ml.cli.options", "pulsar_ml.distributed",
    "pulsar_ml.harness.engine", "pulsar_ml.harness.histories.jepsen",
    "pulsar_ml.harness.linearize.core", "pulsar_ml.harness.linearize.explain",
    "pulsar_ml.harness.linearize.monitors", "pulsar_ml.harness.linearize.objects._objects",
    "pulsar_ml.harness.linearize.parts.guide", "pyarrow", "pyspark", "rich", "socket",
    "subprocess",
)  # fmt: skip
MOST_MODULES = 60  # of the package
MOST_OTHERS = 30  # that neither the package nor click and numpy import; 26 on 3.11, 30 on 3.14


def modules_of(*libraries: str) -> set[str]:
    """Return the modules in a process that imports libraries."""
    program = f"import sys, {', '.join(libraries)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def imported(path: Path) -> list[str]:
    """Return the modules that a check imports, and the names in its environment."""
    program = (
        "import os, sys\n"
        "from click.exceptions import Exit\n"
        "from pulsar_ml.cli import main\n"
        "try:\n"
        f"    main(['linearize', {str(path)!r}, '--model', 'register'], standalone_mode=False)\n"
        "except Exit:\n"
        "    pass\n"
        "print(*sys.modules, *os.environ)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, cwd=ROOT, check=True, env=environment,
    )  # fmt: skip
    return done.stdout.splitlines()[-1].split()


def test_a_small_history_imports_little(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    save_history(history_of(LEGAL), path)
    modules = imported(path)
    assert [name for name in NOT_NEEDED if name in modules] == []
    own = [name for name in modules if name.partition(".")[0] == "pulsar_ml"]
    assert 20 < len(own) <= MOST_MODULES
    libraries = modules_of("click", "numpy")
    others = {name for name in modules if name.islower()} - libraries - set(own)
    assert "select" in others  # the negative control of the difference
    assert len(others) <= MOST_OTHERS, others
    assert VARIABLE not in modules, "a child process inherits it"


def test_the_imports_of_an_explanation_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    save_history(history_of(ILLEGAL), path)
    assert {f"pulsar_ml.harness.linearize.{name}" for name in ("explain", "core")} <= set(
        imported(path)
    )
