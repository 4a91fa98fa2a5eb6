"""Options of test files in pyproject.toml, for commands and for pytest."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.functions.source import TestSource, read_source
from tests.commands import call
from tests.functions.plugin.test_collect import collected
from tests.functions.test_command import RACE, RING


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "check_ring.c"
    path.write_text(RING)
    return path


def read(file: Path, table: str) -> TestSource:
    (file.parents[1] / "pyproject.toml").write_text(table)
    return read_source(file)


def test_rows_apply_to_files_and_to_tests(file: Path) -> None:
    source = read(
        file,
        '[tool.pulsar_ml.check."check_*.c"]\n'
        'mode = "tso"\nexecutions = 70\nraces = false\nfaults = ["timeout", "spurious"]\n'
        'include = ["include", "more"]\nflags = ["-DA=1", "-DB=a b"]\nstd = "c11"\n'
        '[tool.pulsar_ml.check."sub/check_ring.c::test_add_*"]\nexecutions = 7\n'
        '[tool.pulsar_ml.check."other.c"]\nseed = 5\n',
    )
    common = {"mode": "tso", "races": False, "faults": ("timeout", "spurious")}
    options = {test.name: dict(test.options) for test in source.tests}
    assert options == {
        "test_add": {**common, "executions": 70},
        "test_add_again": {**common, "executions": 7},
    }
    folder = file.parents[1]
    assert source.flags == (
        f"-I{folder / 'include'}", f"-I{folder / 'more'}", "-DA=1", "-DB=a b", "-std=c11",
    )  # fmt: skip


def test_comments_override_the_table(file: Path) -> None:
    file.write_text(f"// check: mode=sc\n\n{RING}")
    source = read(file, '[tool.pulsar_ml.check."*.c"]\nmode = "tso"\nseed = 3\n')
    assert dict(source.tests[0].options) == {"mode": "sc", "seed": 3}


def test_the_nearest_file_counts(file: Path) -> None:
    (file.parent / "pyproject.toml").write_text('[tool.pulsar_ml.check."*.c"]\nseed = 4\n')
    assert dict(read(file, '[tool.pulsar_ml.check."*.c"]\nseed = 3\n').tests[0].options) == {
        "seed": 4
    }


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[tool.pulsar_ml.check."*.c"]\nmod = "sc"', r'toml \[.*"\*.c"\]: .* did you mean mode=\?'),
        ('[tool.pulsar_ml.check."*.c"]\nmode = "scc"', "mode is 'scc'; it may be: c11, tso, sc"),
        ('[tool.pulsar_ml.check."*.c"]\nexecutions = "x"', "should be a number from 1"),
        (
            '[tool.pulsar_ml.check."*.c::test_ad"]\nseed = 1',
            "no test 'test_ad'; did you mean test_add",
        ),
        ('[tool.pulsar_ml.check]\n"*.c" = 3', "should be a table of options, not 3"),
        ("[tool.pulsar_ml]\ncheck = 3", "should be a table"),
    ],
)
def test_wrong_tables_are_named(file: Path, table: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read(file, table)


def test_damaged_toml_is_named(file: Path) -> None:
    with pytest.raises(BadRecordError, match=r"pyproject.toml is no TOML: TOMLDecodeError"):
        read(file, "[tool")


def test_the_command_and_pytest_use_the_table(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = file.parents[1]
    file.write_text(RACE)
    (folder / "pyproject.toml").write_text(
        '[tool.pulsar_ml.check."*.c"]\nexecutions = 9\n'
        '[tool.pulsar_ml.check."*.c::test_race"]\nraces = false\n'
    )
    monkeypatch.chdir(folder)
    done = call("check", "sub")
    assert done.out.count("clean: 9 executions") == 3
    report = folder / "report.xml"
    said = collected(folder, "-n", "2", f"--junitxml={report}")  # it has --executions 300
    assert "3 passed" in said
    names = [case.get("name") for case in ET.parse(report).iter("testcase")]
    assert sorted(map(str, names)) == ["test_add", "test_add_again", "test_race"]
    assert "pulsar_ml.executions" in report.read_text()
    (folder / "pyproject.toml").unlink()
    sarif = folder / "failures.sarif"
    failed = collected(folder, f"--sarif={sarif}", "-p", "cacheprovider")
    assert "1 failed, 2 passed" in failed
    assert "check_ring.c" in sarif.read_text()
