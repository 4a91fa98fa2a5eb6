"""The measurement of first failures counts, classifies and compares; it is not run here."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks.first_failure.__main__ import (
    CRATES,
    HERE,
    PROGRAMS,
    Sample,
    finding,
    lines,
    main,
    table,
    written,
)
from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.source import read_source
from tests import ROOT
from tests.conftest import HAS_CXX

EXPECTED = {"ring": "data race", "lazy": "data race", "mailbox": "deadlock"}


def sample(tool: str, *, first: float) -> Sample:
    return Sample("ring", tool, 10.0, first, 10.0 + first, 5.0, 1.0, 2.0, "data race")


def test_each_program_is_written_for_each_tool() -> None:
    folders = {path.name for path in HERE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(PROGRAMS)
    for program in PROGRAMS:
        names = {f"{program}.hpp", f"{program}_test.cpp"}
        names |= {f"{tool}{part}.rs" for tool in CRATES for part in ("", "_sync", "_test")}
        assert {path.name for path in (HERE / program).iterdir()} == names
        assert written(program, "pulsar-ml")[1] == 0


def test_lines_are_those_of_code(tmp_path: Path) -> None:
    path = tmp_path / "a.cpp"
    path.write_text("// A comment.\n\nint a; // one\n  int b;\n  // none\n")
    assert lines(path) == 2


def test_outputs_are_classified_and_an_unknown_one_is_an_error() -> None:
    assert finding("panicked\nCausality violation: Concurrent read") == "data race"
    assert finding("test result: ok. 1 passed") == "nothing"
    with pytest.raises(RuntimeError, match="cargo: not found"):
        finding("cargo: not found")


def test_the_table_compares_with_pulsar_ml() -> None:
    samples = [sample("pulsar-ml", first=first) for first in (9.0, 2.0, 1.0)]
    samples += [sample("loom", first=first) for first in (14.0, 90.0, 2.0)]
    console = Console(width=160)
    with console.capture() as capture:
        console.print(table(samples))
    ours, theirs = capture.get().strip().splitlines()[-2:]
    assert "12.0 " in ours and "x)" not in ours
    assert "24.0 (2.0x)" in theirs and "5.0 (1.0x)" in theirs


def test_a_program_that_does_not_exist_is_a_usage_error() -> None:
    assert CliRunner().invoke(main, ["queue"]).exit_code == 2


@pytest.mark.parametrize("program", PROGRAMS if HAS_CXX else ())
def test_the_mistake_of_a_program_is_found(program: str) -> None:
    source = read_source(HERE / program / f"{program}_test.cpp")
    (subject,) = build_tests(source, into=ROOT / "build" / "functions").values()
    result = check_function(source.path, source.tests[0], subject)
    assert result.failure is not None
    if program in EXPECTED:
        assert result.failure.kind == EXPECTED[program]
    else:
        assert result.failure.kind in {"use after free", "data race", "double free"}
