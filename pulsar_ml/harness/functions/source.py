"""Test functions of a source file: their names, their lines, and the options in its comments.

A test is a function without parameters whose name begins with ``test_``: ``void test_*()`` in C and
C++, outside classes, ``cdef`` or ``def`` functions in Cython, and functions in Python. A comment
``// check: mode=sc executions=5000`` (``# check:`` in Cython and Python) right above a test sets
its options; elsewhere it sets those of all tests of the file.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.engine import FAULTS, OFFERED
from pulsar_ml.harness.functions import LANGUAGES, PYTHON
from pulsar_ml.harness.functions.table import rows_for
from pulsar_ml.input_files import bounded_text, one_line, utf8_path

MOST_BYTES = 16 << 20  # length of a source file
MOST_NAMED = 3  # functions in a message

# Comments, strings and raw strings of C and C++. What they contain is no code.
NO_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)
CYTHON_NO_CODE = re.compile(
    r"""\#[^\n]*|(?P<quote>"{3}|'{3}).*?(?P=quote)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)
C_TEST = re.compile(
    r"""(?:^|(?<=[{};]))[ \t]*(?P<before>(?:extern\s+C\s+|static\s+|inline\s+|\[\[[\w:, ]*\]\]\s*)*)
    (?P<type>void|auto)\s+(?P<name>test_\w*)\s*\(\s*(?:void)?\s*\)\s*
    (?:noexcept\s*)?(?:->\s*void\s*)?\{""",
    re.VERBOSE | re.MULTILINE,
)
CYTHON_TEST = re.compile(
    r"""^(?P<kind>cdef|cpdef|def)\s+(?:inline\s+)?(?:(?:void|int|bint)\s+)?
    (?P<name>test_\w*)\s*\(\s*\)(?P<after>[^\n]*?):[ \t]*(?:\#[^\n]*)?$""",
    re.VERBOSE | re.MULTILINE,
)
OPTIONS_LINE = re.compile(
    r"^[ \t]*(?://|\#|/\*)[ \t]*check:[ \t]*(?P<words>[^\n]*?)[ \t]*(?:\*/[ \t]*)?$", re.MULTILINE
)
# A comment with words like options, which may be one with a slip in its first word.
LIKE_OPTIONS = re.compile(
    r"^[ \t]*(?://|\#|/\*)[ \t]*(?P<mark>[A-Za-z]\w*)[ \t]*(?P<colon>:?)[ \t]*(?P<key>\w+)=\S",
    re.MULTILINE,
)
# Functions that may be meant as tests, of which some are none.
LIKE_TEST = re.compile(
    r"^[ \t]*(?:(?:static|inline|extern\s+C|cdef|cpdef|def|async)\s+)*"
    r"(?P<type>[\w:]+(?:\s*<[^;{}()]*>)?[\s*&]+)?"
    r"\b(?P<name>[Tt]e?st\w*|Tset\w*|tset\w*)\s*\((?P<parameters>[^(){};]*)\)"
    r"(?:[^\n;{]*:|[\w\s>-]*\{)",
    re.MULTILINE,
)
CONDITION = re.compile(r"^[ \t]*#[ \t]*if", re.MULTILINE)
BRACE = re.compile(r"[{};]")
ELSE_BRANCH = re.compile(
    r"^[ \t]*\#[ \t]*(?:else|elif)\b.*?^[ \t]*\#[ \t]*endif", re.MULTILINE | re.DOTALL
)
OPENS_CLASS = re.compile(r"\b(?:class|struct|union)\b[^()=]*$")
OPENS_NAMESPACE = re.compile(
    r"\bnamespace\b(?:\s*\[\[[^\]]*\]\])?\s*(?P<name>\w+(?:\s*::\s*\w+)*)?\s*$"
)
COMMENT_LINE = re.compile(r"\s*(//|#|/\*|\*|$)")


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test function: its name, its line from 1, and its options.

    Attributes:
        needs_gil: True for a ``def`` function of Cython, which is called with the GIL.
        options: as :func:`pulsar_ml.harness.explore` takes them.
        scope: the namespaces around it, as ``app::``.
    """

    __test__ = False  # pytest does not collect this class

    name: str
    line: int
    needs_gil: bool = False
    options: Mapping[str, object] = field(default_factory=dict)
    scope: str = ""


@dataclass(frozen=True, slots=True)
class TestSource:
    """A source file with test functions.

    Attributes:
        path: the absolute path.
        language: "c", "c++", "cython" or "python".
        tests: its test functions, in the order of the file.
        flags: the compiler's flags that its comments name.
        has_conditions: True when the preprocessor may leave tests out (``#if``).
        generated: the text to compile instead, which includes the file.
        checked: False for a build without the engine, for real threads.
    """

    __test__ = False

    path: Path
    language: str
    tests: tuple[TestFunction, ...]
    flags: tuple[str, ...] = ()
    has_conditions: bool = False
    generated: str = ""
    checked: bool = True

    def __post_init__(self) -> None:
        if self.language != "python":  # whose files the engine does not name
            utf8_path(self.path)


def read_source(path: Path) -> TestSource:
    """Find the test functions of the file at ``path``.

    Raises UsageError for a file of another language, one that cannot be read, and for an option in
    its comments that does not exist.
    """
    if path.suffix == PYTHON:
        return python_source(path)
    language = LANGUAGES.get(path.suffix)
    if language is None and not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    if language is None:
        raise UsageError(
            f"{path.name!r} is no file of test functions; its name should end with "
            f"{', '.join((*LANGUAGES, PYTHON))}"
        )
    text = bounded_text(path, "the file of tests", most=MOST_BYTES)
    code = blank(text, language)
    flags: list[str] = []
    found = list((CYTHON_TEST if language == "cython" else C_TEST).finditer(code))
    scopes = dict.fromkeys((match["name"] for match in found), "")
    if language != "cython":
        scopes = dict(reversed(scopes_of(code, found)))  # of two by one name (#if, #else) the first
        found = [match for match in found if match["name"] in scopes]
    starts = {line_of(code, match.start("name")): match["name"] for match in found}
    options = options_of(path, text, language, starts, flags)
    tests = [
        TestFunction(
            match["name"],
            line,
            needs_gil=language == "cython" and match["kind"] == "def",
            options=options[line],
            scope=scopes.pop(match["name"]),
        )
        for match in found
        for line in [line_of(code, match.start("name"))]
        if match["name"] in scopes
    ]
    has_conditions = language != "cython" and CONDITION.search(code) is not None
    return TestSource(path.resolve(), language, tuple(tests), tuple(flags), has_conditions)


def options_of(
    path: Path, text: str, language: str, starts: Mapping[int, str], flags: list[str]
) -> dict[int, dict[str, object]]:
    """Return the options of the tests that begin at the lines ``starts``, by these lines.

    They are those of pyproject.toml, of the file's comments, and of the comment above the test, the
    later ones first. Flags of the compiler go to ``flags``.
    """
    known = PYTHON_OPTIONS if language == "python" else KNOWN
    own: dict[int, dict[str, object]] = {}
    common: dict[str, object] = {}
    lines = text.splitlines()
    by_test: dict[str, dict[str, object]] = {name: {} for name in starts.values()}
    for row in rows_for(path):
        options = parse_options(row.words, row.place, flags, row.folder, known)
        chosen = [name for name in by_test if fnmatchcase(name, row.tests)]
        if not row.tests:
            common.update(options)
        elif not chosen:
            nearest = get_close_matches(row.tests, list(by_test), 1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise UsageError(f"{row.place}: {path.name} has no test {row.tests!r}{hint}")
        for name in chosen if row.tests else ():
            by_test[name].update(options)
    of_file: dict[str, object] = {}
    comments = blank(text, language, comments=False)
    check_marks(comments, path.name)
    for match in OPTIONS_LINE.finditer(comments):
        line = line_of(text, match.start("words"))
        options = parse_options(match["words"], f"{path.name}:{line}", flags, path.parent, known)
        below = first_code_line(lines, line)
        (own.setdefault(below, {}) if below in starts else of_file).update(options)
    return {
        line: {**common, **by_test[name], **of_file, **own.get(line, {})}
        for line, name in starts.items()
    }


def check_marks(text: str, file: str) -> None:
    """Raise UsageError for a comment with options whose first word is nearly ``check:``."""
    for match in LIKE_OPTIONS.finditer(text):
        mark, right = match["mark"], match["mark"] == "check" and match["colon"]
        if not right and match["key"] in KNOWN and get_close_matches(mark.lower(), ["check"], 1):
            raise UsageError(
                f"{file}:{line_of(text, match.start('mark'))}: {mark + match['colon']!r} begins no "
                "options; did you mean 'check:'?"
            )


def blank(text: str, language: str, *, comments: bool = True) -> str:
    """Replace strings, and by default comments, by spaces, so that lines and columns stay."""

    def spaces(match: re.Match[str]) -> str:
        if not comments and match[0].startswith(("//", "/*", "#")):
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    if language in ("cython", "python"):
        return CYTHON_NO_CODE.sub(spaces, text)
    return NO_CODE.sub(spaces, text.replace('extern "C"', "extern  C "))


def near_misses(path: Path) -> str:
    """Say why functions of a file that look like tests are none; "" when there are none."""
    language = LANGUAGES.get(path.suffix)
    if language is None:
        return ""
    code = blank(bounded_text(path, "the file of tests", most=MOST_BYTES), language)
    return "; ".join(
        f"{match['name']} in line {line_of(code, match.start('name'))} {reason}"
        for match in list(LIKE_TEST.finditer(code))[:MOST_NAMED]
        if (reason := why_no_test(match, language))
    )


def why_no_test(match: re.Match[str], language: str) -> str:
    kind = (match["type"] or "").strip()
    if not match["name"].startswith("test_"):
        return "has another name"
    if match["parameters"].strip() not in ("", "void"):
        return "has parameters"
    if language != "cython" and kind not in ("void", "auto"):
        return f"returns {kind}" if kind else "has no type"
    return "is a member of a class" if language != "cython" else ""


def scopes_of(code: str, found: list[re.Match[str]]) -> list[tuple[str, str]]:
    """(name, namespaces around it) of each function of ``found`` that is in no class.

    ``code`` has no comments and no strings. Unnamed namespaces and ``extern "C"`` count as none.
    """
    # Both branches of a condition may open a brace that is closed once: the first one counts.
    code = ELSE_BRANCH.sub(lambda match: " " * len(match[0]), code)
    rows = []
    around: list[str | None] = []  # None: a class
    at = start = 0
    for match in found:
        for brace in BRACE.finditer(code, at, match.start("name")):
            if brace[0] == "{":
                around.append(scope_of(code[start : brace.start()]))
            elif brace[0] == "}" and around:
                around.pop()
            start = brace.end()
        at = match.start("name")
        if None not in around:
            rows.append((match["name"], "".join(scope or "" for scope in around)))
    return rows


def scope_of(before: str) -> str | None:
    """The scope that a brace opens behind this text: ``app::``, None for a class, "" for others."""
    if OPENS_CLASS.search(before):
        return None
    match = OPENS_NAMESPACE.search(before)
    return f"{match['name'].replace(' ', '')}::" if match and match["name"] else ""


def line_of(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1


def first_code_line(lines: list[str], after: int) -> int:
    """Return the number of the first line below ``after`` that is no comment; 0 after a gap."""
    for number in range(after + 1, len(lines) + 1):
        line = lines[number - 1]
        if not line.strip():
            return 0
        if not COMMENT_LINE.match(line):
            return number
    return 0


WORDS: Mapping[str, tuple[str, ...]] = {
    "mode": ("c11", "tso", "sc"),
    "strategy": tuple(OFFERED),
    "semantics": ("gil", "free"),
}
NUMBERS = ("seed", "bound", "spins", "turns", "stores", "step_limit", "depth")
COUNTS = ("executions", "threads")  # numbers from 1
NUMBER = re.compile(r"[0-9]{1,18}")
SECONDS = re.compile(r"[0-9]{0,9}\.?[0-9]{1,9}")
SWITCHES = ("races", "lock_free", "strict")
LISTS = ("faults", "suppress", "also")
BUILD = ("flags", "include", "std")
OF_PYTHON = ("semantics", "also", "strict")
ALL = (*WORDS, *NUMBERS, *COUNTS, "seconds", *SWITCHES, *LISTS, *BUILD)
KNOWN = tuple(key for key in ALL if key not in OF_PYTHON)
PYTHON_OPTIONS = tuple(key for key in ALL if key not in (*BUILD, "races", "threads"))


def parse_options(
    words: str,
    place: str,
    flags: list[str],
    folder: Path = Path(),
    known: tuple[str, ...] = KNOWN,
) -> dict[str, object]:
    """Read ``key=value`` words of a ``check:`` comment; flags of the compiler go to ``flags``.

    ``known`` are the options that there are. Folders of headers are relative to ``folder``.
    """
    options: dict[str, object] = {}
    try:
        split = shlex.split(words)
    except ValueError as error:
        raise UsageError(f"{place}: {error} in 'check: {words}'") from None
    for word in split:
        key, equals, value = word.partition("=")
        if not equals or key not in known:
            nearest = get_close_matches(key, known, 1)
            hint = f"did you mean {nearest[0]}=?" if nearest else f"it may be: {', '.join(known)}"
            raise UsageError(f"{place}: no option {word!r}; {hint}")
        if key == "flags":
            flags += shlex.split(value)
        elif key == "include":
            flags.append(f"-I{folder.resolve() / value}")
        elif key == "std":
            flags.append(f"-std={value}")
        else:
            options[key] = option_value(key, value, place)
    return options


def option_value(key: str, value: str, place: str) -> object:
    if key in WORDS and value not in WORDS[key]:
        raise UsageError(f"{place}: {key} is {value!r}; it may be: {', '.join(WORDS[key])}")
    if key in NUMBERS or key in COUNTS:
        least = int(key in COUNTS)
        if not NUMBER.fullmatch(value) or int(value) < least:
            raise UsageError(f"{place}: {key} is {value!r}; it should be a number from {least}")
        return int(value)
    if key == "seconds":
        if not SECONDS.fullmatch(value) or not float(value):
            raise UsageError(f"{place}: {key} is {value!r}; it should be a number above 0, as 2.5")
        return float(value)
    if key in SWITCHES:
        if value not in ("on", "off"):
            raise UsageError(f"{place}: {key} is {value!r}; it should be on or off")
        return value == "on"
    if key in LISTS:
        parts = tuple(value.split(","))
        for part in parts:
            if key == "faults" and part not in FAULTS:
                raise UsageError(f"{place}: no fault {part!r}; it may be: {', '.join(FAULTS)}")
        return parts
    return value


def python_source(path: Path) -> TestSource:
    """Return the test functions of a file, found by reading it: it is not imported.

    Raises UsageError for a file that cannot be read or is no Python code.
    """
    text = bounded_text(path, "the file of tests", most=MOST_BYTES)
    return TestSource(path.resolve(), "python", python_tests(path, text))


def python_tests(path: Path, text: str) -> tuple[TestFunction, ...]:
    """Return the test functions of the Python code ``text``, which is that of ``path``."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise UsageError(f"{path.name} is no Python code: {one_line(error)}") from None
    found = {
        min([each.lineno, *(mark.lineno for mark in each.decorator_list)]): each
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")
    }
    starts = {line: each.name for line, each in found.items()}
    options = options_of(path, text, "python", starts, [])
    return tuple(
        TestFunction(each.name, each.lineno, options=options[line]) for line, each in found.items()
    )


def is_file_of_tests(file: Path) -> bool:
    """Return True for a file of test functions, by its name; in Python only check_*.py is one."""
    if file.suffix == PYTHON:
        return file.stem.startswith("check_")
    return file.suffix in LANGUAGES and (
        file.stem.startswith(("test_", "check_")) or file.stem.endswith("_test")
    )


def test_files(paths: list[Path]) -> Iterator[Path]:
    """Yield the files of ``paths``; of a folder those named test_*, *_test or check_*."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        yield from sorted(
            file
            for file in path.rglob("*")
            if is_file_of_tests(file)
            and not any(
                part.startswith(".") or part == "build" for part in file.relative_to(path).parts
            )
        )


test_files.__test__ = False  # type: ignore[attr-defined]
