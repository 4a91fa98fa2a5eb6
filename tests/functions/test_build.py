"""Files of test functions are built with the flags that people have, and only when needed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.harness.building.checked import OF_LATER_CLANG, checked_flags, clang_version
from pulsar_ml.harness.functions.check import build_tests, check_function
from pulsar_ml.harness.functions.cython_tests import CPLUS
from pulsar_ml.harness.functions.flags import database_flags, find_database, package_flags
from pulsar_ml.harness.functions.library import build_library
from pulsar_ml.harness.functions.source import TestSource, read_source

TEXT = '#include "limit.h"\nint limit = LIMIT;\nvoid test_a(void) { limit++; }\n'


@pytest.fixture
def source(tmp_path: Path) -> TestSource:
    (tmp_path / "limit.h").write_text("#define LIMIT 4\n")
    path = tmp_path / "ring.c"
    path.write_text(TEXT)
    return read_source(path)


def built(source: TestSource, *flags: str) -> tuple[Path, int]:
    path, _ = build_library(source, into=source.path.parent / "build", flags=flags)
    return path, path.stat().st_mtime_ns


def touch_later(path: Path, text: str) -> None:
    """Write ``path`` with a time of change that differs."""
    before = path.stat().st_mtime_ns
    path.write_text(text)
    os.utime(path, ns=(before + 10**9, before + 10**9))


def test_an_equal_build_is_kept(source: TestSource) -> None:
    assert built(source) == built(source)


def test_another_header_builds_again(source: TestSource) -> None:
    first = built(source)
    touch_later(source.path.with_name("limit.h"), "#define LIMIT 5\n")
    second = built(source)
    assert second[0] != first[0]
    assert built(source) == second


def test_a_header_beside_a_cython_file_builds_again(tmp_path: Path) -> None:
    header, path = tmp_path / "limit.h", tmp_path / "ring.pyx"
    header.write_text("#define LIMIT 4\n")
    path.write_text(
        "cdef extern from 'limit.h' nogil:\n    int LIMIT\n\ndef test_a():\n    assert LIMIT == 4\n"
    )

    def failures() -> list[bool]:
        source = read_source(path)
        subjects = build_tests(source, into=tmp_path / "build")
        (test,) = source.tests
        done = check_function(path, test, subjects[test.name], executions=10)
        return [done.failure is not None, len(subjects[test.name].build_id) == 12]

    assert failures() == [False, True]
    header.write_text("#define LIMIT 5\n")
    assert failures() == [True, True]


def test_link_time_optimisation_leaves_every_access_visible(source: TestSource) -> None:
    """GCC would instrument when it links, and the engine would see nothing."""
    path, _ = built(source, "-flto")
    assert b"__tsan_write4" in path.read_bytes()


def test_another_flag_is_another_build(source: TestSource) -> None:
    first = built(source)
    assert built(source, "-DN=4")[0] != first[0]
    assert built(source) == first


def test_a_file_beside_it_that_is_not_included_builds_nothing(source: TestSource) -> None:
    first = built(source)
    source.path.with_name("other.h").write_text("#define OTHER 1\n")
    assert built(source) == first


def test_another_compiler_is_another_build(
    source: TestSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = built(source)
    compiler = tmp_path / "my-cc"
    compiler.write_text('#!/bin/sh\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    assert built(source)[0] != first[0]


@pytest.mark.parametrize(
    ("about", "version"),
    [
        ("Debian clang version 19.1.7 (3~deb12u1)", 19),
        ("Debian clang version 14.0.6", 14),
        ("gcc (Debian 12.2.0-14) 12.2.0", 0),
    ],
)
def test_a_later_clang_has_flags_of_its_own(tmp_path: Path, about: str, version: int) -> None:
    compiler = tmp_path / "my-cc"
    compiler.write_text(f"#!/bin/sh\necho '{about}'\n")
    compiler.chmod(0o755)
    assert clang_version((str(compiler),)) == version
    flags = checked_flags("plain", [str(compiler)])
    assert (flags[-len(OF_LATER_CLANG) :] == [*OF_LATER_CLANG]) is (version == 19)
    assert ("-mllvm" in flags) is (version > 0)


def test_an_error_is_in_the_compilers_words(source: TestSource) -> None:
    source.path.write_text("void test_a(void) { undeclared = 1; }\n")
    with pytest.raises(BuildError) as caught:
        built(source)
    message = str(caught.value)
    assert message.startswith(f"building {source.path} failed:\n")
    assert "ring.c:1:" in message
    assert "undeclared" in message
    assert "unrecognized command-line option" not in message
    assert "PML_" not in message


def test_without_a_compiler_one_sentence(
    source: TestSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match=r"no compiler 'no-such-compiler' for ring.c; .* CC$"):
        built(source)


def test_without_a_compiler_for_cython_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ring.pyx"
    path.write_text("def test_a():\n    pass\n")
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match=r"^there is no compiler 'no-such-compiler' for .* CC$"):
        build_tests(read_source(path), into=tmp_path / "build")


@pytest.mark.parametrize(
    ("text", "is_cplus"),
    [
        ("from libcpp.vector cimport vector\n", True),
        ("# distutils: language = c++\n", True),
        ("cdef extern from 'ring.hpp' nogil:\n", True),
        ("    cdef Ring* ring = new Ring[int](3)\n", True),
        ("    cdef cppclass Ring:\n", True),
        ("    cdef int new = old\n    self.value = new\n", False),
    ],
)
def test_cplus_in_a_cython_file_is_recognised(text: str, is_cplus: bool) -> None:
    assert bool(CPLUS.search(text)) == is_cplus


@pytest.mark.parametrize("standard", ["-std=c11", "-std=c17", "-std=gnu11"])
def test_standards_of_c(source: TestSource, standard: str) -> None:
    built(source, standard)


def test_tests_behind_conditions(source: TestSource) -> None:
    source.path.write_text(
        "#ifdef MANY\nvoid test_many(void) { }\n#else\nvoid test_few(void) { }\n#endif\n"
    )
    both = read_source(source.path)
    assert [test.name for test in both.tests] == ["test_many", "test_few"]
    into = source.path.parent / "build"
    assert list(build_tests(both, into=into)) == ["test_few"]
    assert list(build_tests(both, into=into, flags=["-DMANY"])) == ["test_many"]
    source.path.write_text("#if 0\nvoid test_many(void) { }\n#endif\n")
    with pytest.raises(BuildError, match="leave no test"):
        build_tests(read_source(source.path), into=into)


def test_a_cython_file_without_c_in_it_names_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "ring.pyx"
    path.write_text("def test_a():\n    cdef int n = undeclared_name(\n")
    with pytest.raises(BuildError, match=r"ring\.pyx:\d"):
        build_tests(read_source(path), into=tmp_path / "build")


def database(folder: Path, **entry: object) -> Path:
    path = folder / "compile_commands.json"
    path.write_text(json.dumps([{"directory": str(folder), "file": "other.c", "command": "cc"}]))
    if entry:
        path.write_text(json.dumps([{"directory": str(folder), "file": "ring.c", **entry}]))
    return path


def test_flags_of_a_compilation_database(source: TestSource) -> None:
    folder = source.path.parent
    command = (
        "cc -Iinclude -isystem third -DN='a b' -D M=1 -std=c11 -O3 -Wall -fsanitize=address "
        "-fPIC -msse4.2 -c ring.c -o ring.o"
    )
    assert database_flags(database(folder, command=command), source.path) == [
        "-I",
        str(folder / "include"),
        "-isystem",
        str(folder / "third"),
        "-D",
        "N=a b",
        "-D",
        "M=1",
        "-std=c11",
        "-msse4.2",
    ]
    arguments = ["cc", "-DN=2", "-c", "ring.c"]
    assert database_flags(database(folder, arguments=arguments), source.path) == ["-D", "N=2"]
    assert database_flags(database(folder), source.path) == []


def test_the_nearest_database_is_used(source: TestSource) -> None:
    folder = source.path.parent
    (folder / ".git").mkdir()
    assert find_database(source.path) is None
    source.path.write_text("#ifndef N\n#error no N\n#endif\nvoid test_a(void) { }\n")
    with pytest.raises(BuildError, match="no N"):
        build_tests(read_source(source.path), into=folder / "builds")
    (folder / "build").mkdir()
    path = database(folder, arguments=["cc", "-DN=2", "-c", "ring.c"])
    moved = path.rename(folder / "build" / path.name)
    assert find_database(source.path) == moved
    build_tests(read_source(source.path), into=folder / "builds")


def fake_pkg_config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = folder / "pkg-config"
    tool.write_text(
        f"#!{sys.executable}\nimport sys\n"
        "if 'ring' not in sys.argv:\n"
        "    sys.exit('Package zzz was not found')\n"
        "print('-I/opt/ring/include -DRING=\"a b\" -lring')\n"
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_flags_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert package_flags([]) == []
    fake_pkg_config(tmp_path, monkeypatch)
    assert package_flags(["ring"]) == ["-I/opt/ring/include", "-DRING=a b", "-lring"]
    with pytest.raises(UsageError, match="--pkg-config: Package zzz was not found"):
        package_flags(["zzz"])
    (tmp_path / "pkg-config").unlink()
    with pytest.raises(UsageError, match="--pkg-config ring: the program pkg-config is not"):
        package_flags(["ring"])
