"""What the tests of the command line share."""

from __future__ import annotations

import pytest

from pulsar_ml.cli.stress import main

TOYS = "tests.stress.toy_suites"


@pytest.fixture
def stress(toys_so, tmp_path, capsys):
    """Calls the command line on the toys: (exit code, standard output, standard error)."""

    def call(command: str, *arguments: str) -> tuple[int, str, str]:
        options = (
            ["--records", str(tmp_path / "records"), "--module", str(toys_so)]
            if command == "run"
            else []
        )
        code = main(["--suites", TOYS, command, *arguments, *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
