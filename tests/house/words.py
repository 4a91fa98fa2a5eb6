"""Rules of language, as functions from sources to complaints.

``test_words.py`` applies them to the tree. ``python -m tests.house.words`` counts the complaints of
each folder, and with a folder as argument lists them.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.house.architecture_rules import Sources, read_project

MOST_COLUMNS = 100

# A first sentence names its subject first; these words put something else in its place.
OPENINGS = (
    "What",
    "Whether",
    "Of",
    "Who",
    "Whoever",
    "Whose",
    "Why",
    "As",
    "From",
    "That",
    "The same",
)
# Verb phrases: they say what happened to a value, not what the value is.
BANNED = frozenset({"told", "asked", "given", "made", "lost", "saved"})

PYTHON = (".py", ".pyi")
CYTHON = (".pyx", ".pxd", ".pxi")
C = (".c", ".h", ".hpp", ".cpp", ".cc")
SCRIPTS = (".sh", ".toml", "Makefile", "/run")
# Sources of the product and its commands; tests and benchmarks have small helpers of any name.
PRODUCT = ("pulsar_ml/", "stress/", "spark/")

GLOSSARY = "docs/glossary.md"
CACHE = re.compile(r"^## The cache$", re.MULTILINE)
TERM = re.compile(r"^### (.+)$", re.MULTILINE)
CLASS = re.compile(
    r"^(?:cdef |ctypedef )?(?:public |packed )?(?:class|cppclass|struct|union|enum) (\w+)(.*)$",
    re.MULTILINE,
)
# One model for each structure, all of them of the one kind that the glossary defines.
FAMILIES = {"Model": "pulsar_ml/specs/"}

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CYTHON_TEXT = re.compile(
    r'(?:"""(?:.|\n)*?"""|\'\'\'(?:.|\n)*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#.*)'
)
C_TEXT = re.compile(r'/\*(?:.|\n)*?\*/|//.*|"(?:\\.|[^"\\\n])*"')  # fmt: skip
BLOCK_DOCSTRING = re.compile(r'^[ \t]*[rRbB]?"""((?:.|\n)*?)"""', re.MULTILINE)
TABLE_OR_CODE = re.compile(r"^ *(?:\||<|\[[^\]]+\]: )")
LONG_WORD = re.compile(r"\S{60,}")


@dataclass(frozen=True, slots=True)
class Complaint:
    path: str
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


Rule = Callable[[Sources], Iterator[Complaint]]


# Docstrings --------------------------------------------------------------------------------------


def docstrings(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring, and each comment that opens a native file, with its first line."""
    if path.endswith(PYTHON):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, DOCUMENTED) and (found := ast.get_docstring(node)):
                yield node.body[0].lineno, found
    elif path.endswith(CYTHON):
        for block in BLOCK_DOCSTRING.finditer(text):
            yield text.count("\n", 0, block.start()) + 1, block[1]
        if header := re.match(r"(?:#!.*\n)?((?:#.*\n)+)", text):
            yield 1, re.sub(r"^# ?", "", header[1], flags=re.MULTILINE)
    elif path.endswith(C):
        header = re.match(r"(?:/\*(?:.|\n)*?\*/|(?://.*\n)+)", text)
        if header:
            yield 1, re.sub(r"^[ /*]+", "", header[0], flags=re.MULTILINE)


def sentences_begin_with_their_subject(sources: Sources) -> Iterator[Complaint]:
    for path, text in sources.items():
        for line, found in docstrings(path, text):
            start = found.strip()
            for opening in OPENINGS:
                if re.match(rf"{opening}\b(?!-)", start):
                    first = start.splitlines()[0]
                    yield Complaint(path, line, "opening", f"begins with {opening!r}: {first}")


# Names -------------------------------------------------------------------------------------------


def python_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield each name that Python code defines; names of other packages are theirs."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.keyword | ast.alias):
            name = node.arg if isinstance(node, ast.keyword) else node.asname
            yield from [(node.lineno, name)] if name else []
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def native_names(text: str, prose: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield each identifier of native code, which has no names of other packages to speak of."""
    blank = prose.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(blank.splitlines(), 1):
        for found in IDENTIFIER.finditer(line):
            yield number, found[0]


def names(path: str, text: str) -> Iterator[tuple[int, str]]:
    if path.endswith(PYTHON):
        yield from python_names(text)
    elif path.endswith(CYTHON):
        yield from native_names(text, CYTHON_TEXT)
    elif path.endswith(C):
        yield from native_names(text, C_TEXT)


def names_are_nouns(sources: Sources) -> Iterator[Complaint]:
    for path, text in sources.items():
        stem = path.rpartition("/")[2].partition(".")[0]
        for line, name in [(1, stem), *names(path, text)]:
            if name.strip("_").lower() in BANNED:
                yield Complaint(path, line, "name", f"{name!r} is no name")


# Lines -------------------------------------------------------------------------------------------


def python_prose(text: str) -> set[int]:
    """Return the numbers of the lines with a docstring or a comment."""
    lines: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines.add(token.start[0])
    return lines


def blocks(text: str, pattern: re.Pattern[str], is_prose: Callable[[str], bool]) -> set[int]:
    """Return the numbers of the lines with a comment or a docstring, as ``pattern`` finds them."""
    lines: set[int] = set()
    for found in pattern.finditer(text):
        if is_prose(found[0]):
            first = text.count("\n", 0, found.start()) + 1
            lines |= set(range(first, first + found[0].count("\n") + 1))
    return lines


def page_prose(text: str) -> set[int]:
    """Return the numbers of the lines of a page outside tables and blocks of code."""
    fenced, lines = False, set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not TABLE_OR_CODE.match(line):
            lines.add(number)
    return lines


def prose(path: str, text: str) -> set[int]:
    """Return the numbers of the lines of prose: pages, docstrings, comments."""
    if path.endswith(PYTHON):
        return python_prose(text)
    if path.endswith(CYTHON):
        return blocks(text, CYTHON_TEXT, lambda found: found.startswith(("#", '"""', "'''")))
    if path.endswith(C):
        return blocks(text, C_TEXT, lambda found: found.startswith("/"))
    if path.endswith(".md"):
        return page_prose(text)
    if path.endswith(SCRIPTS):
        return {n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")}
    return set()


def lines_of_prose_fit(sources: Sources) -> Iterator[Complaint]:
    for path, text in sources.items():
        lines = text.splitlines()
        for number in sorted(prose(path, text)):
            line = lines[number - 1]
            if len(line) > MOST_COLUMNS and not LONG_WORD.search(line):
                yield Complaint(
                    path, number, "columns", f"{len(line)} columns: {line.strip()[:50]}..."
                )


# Glossary ----------------------------------------------------------------------------------------


def terms(sources: Sources) -> list[str]:
    return TERM.findall(sources.get(GLOSSARY, ""))


def each_term_is_defined_once(sources: Sources) -> Iterator[Complaint]:
    for term, times in Counter(map(str.lower, terms(sources))).items():
        if times > 1:
            yield Complaint(GLOSSARY, 1, "glossary", f"{term!r} is defined {times} times")
    text = sources.get(GLOSSARY, "")
    for found in re.finditer(r"^### (.+)\n\n?(?=#|\Z)", text, re.MULTILINE):
        line = text.count("\n", 0, found.start()) + 1
        yield Complaint(GLOSSARY, line, "glossary", f"{found[1]!r} has no definition")


def harness_terms(sources: Sources) -> list[str]:
    """Return the terms before the section of the cache, whose names every layer repeats."""
    return TERM.findall(CACHE.split(sources.get(GLOSSARY, ""))[0])


def terms_name_one_class(sources: Sources) -> Iterator[Complaint]:
    classes = {"".join(word.title() for word in term.split()) for term in harness_terms(sources)}
    classes |= {"State", "Tally", "Progress"}
    homes: dict[str, dict[str, int]] = {}
    for path, text in sources.items():
        if not path.startswith(PRODUCT) or not path.endswith((".py", *CYTHON)):
            continue
        for found in CLASS.finditer(text):
            name, line = found[1], text.count("\n", 0, found.start()) + 1
            declared = path.endswith(".pxd") and path[:-3] + "pyx" in sources
            family = path.startswith(FAMILIES.get(name, "?"))
            if name in classes and not declared and not family:
                homes.setdefault(name, {}).setdefault(path, line)
    for name, places in sorted(homes.items()):
        for path, line in places.items() if len(places) > 1 else ():
            yield Complaint(path, line, "meaning", f"{name} is one of {len(places)} classes")


RULES: tuple[Rule, ...] = (
    sentences_begin_with_their_subject,
    names_are_nouns,
    lines_of_prose_fit,
    each_term_is_defined_once,
    terms_name_one_class,
)


def folder_of(path: str) -> str:
    """Return the folder by which complaints are counted: at most three names deep."""
    return "/".join(path.split("/")[:-1][:3]) or "."


def main(arguments: list[str]) -> int:
    """Print a table of complaints by folder, or all complaints of the folders in ``arguments``."""
    sources = read_project()
    found = [complaint for rule in RULES for complaint in rule(sources)]
    if arguments:
        chosen = [c for c in found if c.path.startswith(tuple(arguments))]
        print(*sorted(map(str, chosen)), sep="\n")
        return bool(chosen)
    rules = ("opening", "name", "columns", "glossary", "meaning")
    counts = Counter((folder_of(complaint.path), complaint.rule) for complaint in found)
    print(f"{'folder':40}" + "".join(f"{rule:>10}" for rule in rules))
    for folder in sorted({folder for folder, _ in counts}):
        print(f"{folder:40}" + "".join(f"{counts[folder, rule]:10}" for rule in rules))
    totals = Counter(complaint.rule for complaint in found)
    print(f"{'all':40}" + "".join(f"{totals[rule]:10}" for rule in rules))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
