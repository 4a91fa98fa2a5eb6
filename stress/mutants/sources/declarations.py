"""Declarations of native sources and Python modules, without comments, layout and paths.

A source is the multiset of its top-level declarations. Imports and includes inside the project are
no declarations: the files that they name are read as well (:mod:`stress.mutants.sources.digests`),
so a file that moves, or a function that moves to another file, changes nothing. Imports that rename
something (``as``) stay, by name. Python is compared by its syntax tree, and therefore does not
change with its formatting; Cython and C are compared by their tokens, and Cython's blocks by depth.
Parameters and local variables of Cython functions have numbers for names.
The standard ``tokenize`` and ``ast.dump`` answer differently in each version of Python; the
functions here do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

PROJECT = "pulsar_ml"
QUOTED = r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
WORD = r"\.?\d(?:[eEpP][+-]|[\w.])*|\w+"
SIGN = r"\*\*=|//=|>>=|<<=|\.\.\.|[-+*/%&|^=<>!]=|->|&&|\|\||\+\+|--|<<|>>|\*\*|//|##|\S"

CYTHON_TOKEN = re.compile(
    r"(?P<comment>\#[^\n]*)|(?P<joined>\\\n)|(?P<newline>\n)|(?P<space>[^\S\n]+)"
    r'|(?P<string>[a-zA-Z]{0,2}(?:"""(?:[^\\]|\\.)*?"""|'
    + r"'''(?:[^\\]|\\.)*?'''|"
    + f"{QUOTED}))"
    f"|(?P<other>{WORD}|{SIGN})",
    re.DOTALL,
)
C_TOKEN = re.compile(
    r"(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<space>(?:\s|\\\n)+)"
    r"|(?P<directive>(?<![^\n])[^\S\n]*\#(?:\\\n|/\*.*?\*/|[^\n])*)"
    f"|(?P<string>{QUOTED})|(?P<other>{WORD}|{SIGN})",
    re.DOTALL,
)
BRACKETS, CLOSING = frozenset("([{"), frozenset(")]}")
PROJECT_IMPORT = re.compile(rf"(?:from {PROJECT}\b.* (?:c?import)|c?import {PROJECT}\b)")


def declarations(path: PurePath, text: str) -> list[str]:
    """Sorted top-level declarations of a source, in the language that its name ends with."""
    readers = {".py": python_declarations, ".c": c_declarations, ".h": c_declarations}
    return sorted(readers.get(path.suffix, cython_declarations)(text))


# Cython -------------------------------------------------------------------------------


@dataclass(slots=True)
class Line:
    """A logical line: its depth in blocks, its tokens, and which of them are strings."""

    depth: int
    tokens: list[str] = field(default_factory=list)
    strings: int = 0

    def __str__(self) -> str:
        return f"{self.depth} {' '.join(self.tokens)}"


def logical_lines(text: str) -> Iterator[Line]:
    """Lines with the depth of their block; those inside brackets are one line."""
    columns = [0]
    line = Line(0)
    column = brackets = 0
    at_start = True
    for match in CYTHON_TOKEN.finditer(text + "\n"):
        kind, token = match.lastgroup, match.group()
        if kind == "newline":
            if line.tokens and not brackets:
                yield line
                line = Line(0)
            column, at_start = 0, not line.tokens
        elif kind == "space" and at_start:
            column = len(token.expandtabs())
        elif kind in {"string", "other"}:
            if at_start:
                while column < columns[-1]:
                    columns.pop()
                if column > columns[-1]:
                    columns.append(column)
                line.depth, at_start = len(columns) - 1, False
            line.tokens.append(token)
            line.strings += kind == "string"
            brackets += (token in "([{") - (token in ")]}")
    if line.tokens:
        yield line


def cython_declarations(text: str) -> list[str]:
    """Top-level statements, each with its block.

    A line that is only a string is a docstring and left out; below ``cdef extern`` it is C.
    """
    found: list[list[Line]] = []
    joins = False  # a decorator belongs to what comes next
    before = ""
    for line in logical_lines(text):
        extern, before = before.startswith("cdef extern"), " ".join(line.tokens)
        if line.strings == len(line.tokens):
            if not extern:
                continue
            code = " ".join(token.strip("\"'") for token in line.tokens)
            line.tokens = [*c_declarations(code)]
        elif line.tokens[:3] == ["cdef", "extern", "from"]:
            line.tokens[3] = line.tokens[3].rpartition("/")[2].strip("\"'")
        begins = line.depth == 0 and not joins and line.tokens[0] not in {"else", "elif"}
        if begins or not found:
            found.append([])
        joins = line.depth == 0 and line.tokens[0] == "@"
        if PROJECT_IMPORT.match(before):
            line.tokens = renamed(line.tokens)
        if line.tokens:
            found[-1].append(line)
    return ["\n".join(map(str, without_local_names(lines))) for lines in found if lines]


def without_local_names(lines: list[Line]) -> list[Line]:
    """A declaration whose parameters and local variables have numbers for names."""
    header = lines[0].tokens
    if header[0] not in {"def", "cdef", "cpdef"} or header[-1] != ":" or "(" not in header:
        return lines
    first = header.index("(")
    names = [declared_name(part) for part in parts_of(header[first + 1 : closing(header, first)])]
    for line in lines[1:]:
        if line.tokens[0] == "cdef" and line.tokens[-1] != ":":
            names += [declared_name(part) for part in parts_of(line.tokens[1:])]
    numbers = {name: f"%{number}" for number, name in enumerate(dict.fromkeys(names)) if name}
    return [Line(line.depth, list(numbered(line.tokens, numbers))) for line in lines]


def closing(tokens: list[str], opening: int) -> int:
    """The index of the bracket that closes the one at ``opening``."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index] in BRACKETS) - (tokens[index] in CLOSING)
        if depth == 0:
            return index
    return len(tokens)


def parts_of(tokens: list[str]) -> list[list[str]]:
    """Tokens separated by the commas outside brackets."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token in BRACKETS) - (token in CLOSING)
        if token == "," and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def declared_name(tokens: list[str]) -> str:
    """The name that a parameter or a declarator declares; "" for none.

    It is the last word outside brackets, before a default. A pointer to a function has brackets
    around its name, and keeps it.
    """
    if "=" in tokens:
        tokens = tokens[: tokens.index("=")]
    name, depth = "", 0
    for token in tokens:
        depth += (token in BRACKETS) - (token in CLOSING)
        if token == "(":
            return ""
        if not depth and re.fullmatch(r"[A-Za-z_]\w*", token):
            name = token
    return name


def numbered(tokens: list[str], numbers: dict[str, str]) -> Iterator[str]:
    """Tokens with numbers for these names, except for fields and keywords of calls."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token in BRACKETS) - (token in CLOSING)
        is_field = index > 0 and tokens[index - 1] in {".", "->"}
        is_keyword = depth > 0 and tokens[index + 1 : index + 2] == ["="] and tokens[0] != "cdef"
        yield token if is_field or is_keyword else numbers.get(token, token)


def renamed(tokens: list[str]) -> list[str]:
    """The renames of an import, sorted; nothing for an import without ``as``."""
    text = " ".join(tokens)
    return ["import", *sorted(re.findall(r"\w+ as \w+", text))] if "as" in tokens else []


# C ------------------------------------------------------------------------------------


def c_declarations(text: str) -> list[str]:
    """Top-level declarations. A directive is one, and so is all from ``#if`` to ``#endif``."""
    found: list[str] = []
    item: list[str] = []
    depth = conditions = 0
    opener = ""  # the token before the outermost brace: ")" for a function
    for token in without_guard([*c_tokens(text)]):
        directive = token.startswith("#")
        if directive and not depth and not conditions and item:
            found.append(" ".join(item))
            item = []
        conditions += token.startswith("#if")
        conditions -= token.startswith("#endif")
        if token == "{" and not depth:
            opener = item[-1] if item else ""
        depth += (token in {"(", "[", "{"}) - (token in {")", "]", "}"})
        item.append(token)
        ends = directive or token == ";" or (token == "}" and opener == ")")
        if ends and not depth and not conditions:
            found.append(" ".join(item))
            item = []
    return [*found, *([" ".join(item)] if item else [])]


def without_guard(tokens: list[str]) -> list[str]:
    """Tokens without the include guard around all of them, whose name is often that of the path."""
    name = tokens[0].removeprefix("#ifndef ") if tokens else ""
    guarded = tokens[:2] == [f"#ifndef {name}", f"#define {name}"] and tokens[-1] == "#endif"
    return tokens[2:-1] if guarded else tokens


def c_tokens(text: str) -> Iterator[str]:
    for match in C_TOKEN.finditer(text):
        if match.lastgroup == "directive":
            yield from directive(match.group())
        elif match.lastgroup in {"string", "other"}:
            yield match.group()


def directive(text: str) -> list[str]:
    """A directive as one token; none for an include from the project."""
    if re.match(rf'\s*#\s*include\s+"{PROJECT}/', text):
        return []
    body = text.strip().removeprefix("#")
    tokens = [
        match.group() for match in C_TOKEN.finditer(body) if match.lastgroup in {"string", "other"}
    ]
    return ["#" + " ".join(tokens)]


# Python -------------------------------------------------------------------------------


def python_declarations(text: str) -> list[str]:
    return [tree_text(node) for node in without_words(ast.parse(text).body)]


def without_words(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """Yields statements without docstrings, and the renames of imports from the project."""
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                continue
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and of_project(node):
            yield from (alias for alias in node.names if alias.asname)
            continue
        yield node


def of_project(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
    return all((name or "").partition(".")[0] == PROJECT for name in names)


# Fields that follow from the rest of the tree, or that no statement needs.
UNUSED_FIELDS = {"ctx", "kind", "type_comment", "type_ignores"}


def tree_text(value: object) -> str:
    """A syntax tree as text, without positions, docstrings and empty fields."""
    if isinstance(value, list):
        statements = value and isinstance(value[0], ast.stmt)
        return f"[{','.join(map(tree_text, without_words(value) if statements else value))}]"
    if not isinstance(value, ast.AST):
        return repr(value)
    if isinstance(value, ast.alias):
        value = ast.alias(value.name.rpartition(".")[2], value.asname)
    fields = [
        f"{name}={tree_text(child)}"
        for name, child in ast.iter_fields(value)
        if name not in UNUSED_FIELDS and child is not None and child != []
    ]
    return f"{type(value).__name__}({','.join(fields)})"
