"""Test functions are found in source files, with their lines and options; typos are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.functions.check import check
from pulsar_ml.harness.functions.source import TestSource, near_misses, read_source, test_files


def source(folder: Path, text: str, name: str = "ring.cpp") -> TestSource:
    path = folder / name
    path.write_text(text)
    return read_source(path)


def names(folder: Path, text: str, name: str = "ring.cpp") -> list[str]:
    return [test.name for test in source(folder, text, name).tests]


@pytest.mark.parametrize(
    "head",
    [
        "void test_a() {",
        "void test_a(void)\n{",
        "static void test_a() {",
        'extern "C" void test_a() {',
        "inline void test_a() noexcept {",
        "[[maybe_unused]] static void test_a() {",
        "auto test_a() -> void {",
        "  void  test_a ( )\n\n{",
    ],
)
def test_forms_of_a_function_that_are_tests(tmp_path: Path, head: str) -> None:
    assert names(tmp_path, f"{head} }}\n") == ["test_a"]


@pytest.mark.parametrize(
    "text",
    [
        "void test_a();",
        "void test_a(int n) { }",
        "int test_a() { return 0; }",
        "void attest_a() { }",
        "// void test_a() { }",
        "/* \nvoid test_a() { }\n*/",
        'const char *text = "\\\nvoid test_a() { }";',
        'auto text = R"x(\nvoid test_a() { }\n)x";',
        "int main() { test_a(); }",
    ],
)
def test_what_only_looks_like_a_test(tmp_path: Path, text: str) -> None:
    assert names(tmp_path, f"{text}\n") == []


def test_a_quote_in_a_comment_hides_nothing(tmp_path: Path) -> None:
    text = "// it's a ring\nvoid test_a() { char c = '\"'; }\n/* \" */ \nvoid test_b() { }\n"
    assert names(tmp_path, text) == ["test_a", "test_b"]


def test_an_apostrophe_in_a_number_hides_nothing(tmp_path: Path) -> None:
    assert names(tmp_path, "int n = 1'000;\nvoid test_a() { }\nint m = 2'000;\n") == ["test_a"]


def test_functions_of_cython(tmp_path: Path) -> None:
    text = (
        "cdef void test_a() noexcept nogil:\n    pass\n\n"
        "def test_b():\n    pass\n\n"
        "cdef int test_c() except -1 nogil:  # a comment\n    return 0\n\n"
        "def helper():\n    pass\n\n"
        "def test_d(n):\n    pass\n\n"
        "cdef class Box:\n    def test_e(self):\n        pass\n"
    )
    found = source(tmp_path, text, "ring.pyx")
    assert [(test.name, test.line, test.needs_gil) for test in found.tests] == [
        ("test_a", 1, False),
        ("test_b", 4, True),
        ("test_c", 7, False),
    ]


def test_text_in_a_docstring_of_cython_is_no_test(tmp_path: Path) -> None:
    text = '"""An example:\n\ndef test_a():\n    pass\n"""\n\ndef test_b():\n    pass\n'
    assert names(tmp_path, text, "ring.pyx") == ["test_b"]


def test_namespaces_and_classes(tmp_path: Path) -> None:
    text = (
        "namespace { void test_unnamed() { } }\n"
        "namespace app { namespace inner {\nstruct ring { void test_method() { } };\n"
        "static void helper(struct ring *r) { struct local { void test_local() { } }; }\n"
        "#if A\nvoid two() {\n#else\nvoid one() {\n#endif\n}\n"
        "void test_inner() { } } // inner\n void test_outer() { if (1) { } }\n}\n"
        'extern "C" { void test_c() { } }\n'
        "inline namespace v1::v2 { void test_v2() { } }\n"
        "void test_none() { }\n"
    )
    assert [test.scope + test.name for test in source(tmp_path, text).tests] == [
        "test_unnamed",
        "app::inner::test_inner",
        "app::test_outer",
        "test_c",
        "v1::v2::test_v2",
        "test_none",
    ]


def test_two_of_one_name_are_one_test(tmp_path: Path) -> None:
    text = "#ifdef A\nvoid test_a() { }\n#else\nvoid test_a() { int n; }\n#endif\n"
    assert [test.line for test in source(tmp_path, text).tests] == [2]


def test_lines_and_options(tmp_path: Path) -> None:
    found = source(
        tmp_path,
        "// check: executions=7 std=c++17 include=headers\n"
        "#include <atomic>\n"
        "\n"
        "// check: mode=sc races=off\n"
        "// A sentence about it.\n"
        "void test_a() { }\n"
        "void test_b() { }\n"
        '// check: flags="-DN=4 -O1" faults=timeout,spurious\n'
        "\n"
        "void test_c() { }\n",
    )
    a, b, c = found.tests
    assert (a.line, b.line, c.line) == (6, 7, 10)
    everywhere = {"executions": 7, "faults": ("timeout", "spurious")}
    assert a.options == {**everywhere, "mode": "sc", "races": False}
    assert b.options == c.options == everywhere
    assert found.flags == ("-std=c++17", f"-I{tmp_path / 'headers'}", "-DN=4", "-O1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("mod=sc", r"ring.cpp:1: no option 'mod=sc'; did you mean mode=\?"),
        ("mode=rc11", r"ring.cpp:1: mode is 'rc11'; it may be: c11, tso, sc"),
        ("executions=many", "executions is 'many'; it should be a number"),
        ("races=no", "races is 'no'; it should be on or off"),
        ("faults=timeouts", "no fault 'timeouts'; it may be: "),
        ("mode", "no option 'mode'; did you mean mode="),
        ("zzz=1", "no option 'zzz=1'; it may be: mode, "),
        ('flags="-DN', "No closing quotation"),
    ],
)
def test_typos_in_options_are_named(tmp_path: Path, words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        source(tmp_path, f"// check: {words}\nvoid test_a() {{ }}\n")


def test_an_options_line_in_a_string_is_no_option(tmp_path: Path) -> None:
    text = 'const char *text = R"(\n// check: mod=sc\n)";\nvoid test_a() { }\n'
    assert source(tmp_path, text).tests[0].options == {}


def test_a_file_of_another_language(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'ring.rs' is no file of test functions; .*\.cpp"):
        source(tmp_path, "fn test_a() {}", "ring.rs")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ring\.cpp"):
        read_source(tmp_path / "ring.cpp")


def test_a_misspelt_test_has_its_neighbour_named(tmp_path: Path) -> None:
    path = source(tmp_path, "void test_push() { }\n").path
    with pytest.raises(UsageError, match="no test 'test_puhs'; did you mean test_push"):
        check(path, test="test_puhs")
    with pytest.raises(UsageError, match="no test 'zzz'; it has: test_push"):
        check(path, test="zzz")


def test_a_file_without_tests_is_an_error(tmp_path: Path) -> None:
    path = source(tmp_path, "int main() { }\n").path
    with pytest.raises(UsageError, match=r"ring.cpp has no test: no function test_\*\(\)"):
        check(path)


def test_files_of_a_folder(tmp_path: Path) -> None:
    wanted = ["check_a.c", "sub/ring_test.cc", "sub/test_b.pyx"]
    for name in [
        *wanted,
        "ring.cpp",
        "test_a.py",
        "build/test_c.c",
        ".hidden/test_d.c",
        "test_e.h",
    ]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in test_files([tmp_path])]
    assert found == wanted
    assert list(test_files([tmp_path / "ring.cpp"])) == [tmp_path / "ring.cpp"]


# Slips -----------------------------------------------------------------------------------------


def test_options_in_a_block_comment(tmp_path: Path) -> None:
    path = tmp_path / "test_it.c"
    path.write_text("/* check: mode=sc executions=7 */\nvoid test_it(void) { }\n")
    (test,) = read_source(path).tests
    assert test.options == {"mode": "sc", "executions": 7}


@pytest.mark.parametrize(
    ("comment", "mark"),
    [
        ("// chek: mode=sc", "chek:"),
        ("// check mode=sc", "check"),
        ("// Check: mode=sc", "Check:"),
        ("/* checks: executions=5 */", "checks:"),
    ],
)
def test_a_slip_in_the_mark_of_options_is_named(tmp_path: Path, comment: str, mark: str) -> None:
    path = tmp_path / "test_it.c"
    path.write_text(f"\n{comment}\nvoid test_it(void) {{ }}\n")
    with pytest.raises(UsageError, match=f"test_it.c:2: '{mark}' begins no options; did you mean"):
        read_source(path)


@pytest.mark.parametrize(
    "comment",
    ["// check x=1 first", "// note: mode=sc is faster", "// checked in: a=b", "// check that a=b"],
)
def test_other_comments_are_left_alone(tmp_path: Path, comment: str) -> None:
    path = tmp_path / "test_it.c"
    path.write_text(f"{comment}\nvoid test_it(void) {{ }}\n")
    (test,) = read_source(path).tests
    assert test.options == {}


@pytest.mark.parametrize(
    ("name", "text", "reasons"),
    [
        (
            "a.cpp",
            "void tset_push() { }\nvoid testPush() { }\nint test_pop() { return 0; }\n",
            (
                "tset_push in line 1 has another name",
                "testPush in line 2 has another name",
                "test_pop in line 3 returns int",
            ),
        ),
        ("b.cpp", "void test_it(int a,\n int b)\n{\n}\n", ("test_it in line 1 has parameters",)),
        (
            "c.cpp",
            "struct A {\n    void test_it() { }\n};\n",
            ("test_it in line 2 is a member of a class",),
        ),
        ("d.pyx", "def test_it(queue):\n    pass\n", ("test_it in line 1 has parameters",)),
        ("e.c", "int tested(void);\nint main(void) { return tested(); }\n", ()),
        ("f.c", '/* void test_it(int a) { } */ char *s = "void test_it(int a) { }";\n', ()),
    ],
)
def test_functions_that_look_like_tests_are_named(
    tmp_path: Path, name: str, text: str, reasons: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert near_misses(path) == "; ".join(reasons)
    assert read_source(path).tests == ()
