"""The table of platforms holds the rows of runs, and no classifier contradicts a row."""

from __future__ import annotations

import hashlib
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tools.interpreters import InterpreterError, Source, download
from tools.platforms import (
    PAGE,
    ROOT,
    Row,
    counts,
    left_out,
    page,
    question,
    stored,
    supported,
    was_ended,
)

ROW = Row(
    "2026-11-23", "0123456789ab", "3.12.1", "yes", "gcc 12.2.0", "x86_64", "Debian 12", 9_000, 0, ""
)


def claimed() -> set[str]:
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    return set(re.findall(r"Python :: (3[.]\d+)", "\n".join(classifiers)))


def test_the_page_has_the_rows() -> None:
    assert page(stored()) == PAGE.read_text()
    assert page([*stored(), ROW]) != PAGE.read_text()


def wrong(rows: list[Row], claims: set[str]) -> list[str]:
    """Versions that passed and are not claimed, or are claimed although their last run failed."""
    passed = set(supported(rows))
    failed = {row.place[0] for row in rows if row.gil == "yes"} - passed
    return sorted((passed - claims) | (failed & claims))


def test_classifiers_agree_with_the_rows() -> None:
    assert not wrong(stored(), claimed())


def test_a_claim_that_a_row_contradicts_is_noticed() -> None:
    assert not wrong([ROW], {"3.12"})
    assert wrong([ROW], set()) == ["3.12"]
    assert wrong([replace(ROW, failed=1)], {"3.12"}) == ["3.12"]
    assert wrong([replace(ROW, passed=0)], {"3.12"}) == ["3.12"]
    assert not wrong([replace(ROW, gil="no", failed=1)], {"3.12"})


def test_a_newer_run_takes_the_place_of_one_with_the_same_interpreter_and_compiler() -> None:
    assert replace(ROW, interpreter="3.12.9", compiler="gcc 12.9.0").place == ROW.place
    assert replace(ROW, compiler="gcc 14.1.0").place != ROW.place
    assert replace(ROW, gil="no").place != ROW.place
    assert replace(ROW, compiler="clang 14.0.6").place != ROW.place


def test_tests_that_failed_or_were_skipped_did_not_pass(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="1"/></testsuites>'
    )
    assert counts(report) == (5, 4)


def test_sentences_about_tests_that_were_left_out_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("C++ compiler: found\nno Clang: left out are engine/strangers/test_clang.py\n")
    assert left_out(log) == "no Clang"


def test_a_run_that_was_ended_is_no_row(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("..F\n!!!!!!!!!!! KeyboardInterrupt !!!!!!!!!!!\n1 failed, 2 passed in 3.0s\n")
    assert was_ended(log)
    log.write_text("..F\n1 failed, 2 passed in 3.0s\n")
    assert not was_ended(log)


def test_an_interpreter_tells_its_version(tmp_path: Path) -> None:
    own = question(Path(sys.executable))
    assert own is not None and own.name.startswith(f"3.{sys.version_info.minor}")
    assert question(tmp_path / "python3") is None


def test_an_archive_with_another_digest_is_refused(tmp_path: Path) -> None:
    served = tmp_path / "pool/main/p/python3.14/python3.14_3.14.0.orig.tar.xz"
    served.parent.mkdir(parents=True)
    served.write_bytes(b"sources")
    wrong = hashlib.sha256(b"other").hexdigest()
    with pytest.raises(InterpreterError, match="another file is served"):
        download(Source("3.14.0", wrong), tmp_path / "archive", tmp_path.as_uri())
    download(Source("3.14.0", digest_of(served)), tmp_path / "archive", tmp_path.as_uri())
    assert (tmp_path / "archive").read_bytes() == b"sources"


@pytest.mark.parametrize("mirror", ["file:///nowhere", "no address"])
def test_an_archive_that_is_not_served_is_named(tmp_path: Path, mirror: str) -> None:
    with pytest.raises(InterpreterError, match="python3.14_3.14.0.orig.tar.xz"):
        download(Source("3.14.0", ""), tmp_path / "archive", mirror)


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
