"""Statements of the native functions, with their tokens and positions in the source."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tokenize import COMMENT, DEDENT, ENDMARKER, INDENT, NEWLINE, NL, TokenInfo

LAYOUT = {COMMENT, NL, NEWLINE, INDENT, DEDENT, ENDMARKER}
# After these words an operand follows, so that ``<`` there begins a cast.
WORDS = {"return", "and", "or", "not", "if", "elif", "while", "else", "in", "is"}


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a function, or the head of a block.

    Attributes:
        function: the name of the function around it.
        line, last_line: the first and the last line, from 1 on.
        indent: the number of spaces before it.
        tokens: its words and signs.
        spaced: of each token true if a space precedes it.
        is_last: true for the last statement of the outermost block of the function.
    """

    function: str
    line: int
    last_line: int
    indent: int
    tokens: tuple[str, ...]
    spaced: tuple[bool, ...]
    is_last: bool = False

    def text(
        self, begin: int = 0, end: int | None = None, changed: Mapping[int, str] | None = None
    ) -> str:
        """The tokens of a part on one line; ``changed`` maps an index to another token."""
        end = len(self.tokens) if end is None else end
        parts = []
        for index in range(begin, end):
            space = " " if self.spaced[index] and index > begin else ""
            parts.append(space + (changed or {}).get(index, self.tokens[index]))
        return "".join(parts)

    @property
    def is_head(self) -> bool:
        return self.tokens[-1] == ":"


def statements(path: Path) -> list[Statement]:
    """All statements of the functions in a Cython source, in their order."""
    found: list[Statement] = []
    function, inside = "", False
    for tokens in logical_lines(path.read_text()):
        words = tuple(token.string for token in tokens)
        indent = tokens[0].start[1]
        if not indent:
            inside = words[0] == "cdef" and words[-1] == ":" and "(" in words
            inside = inside and "extern" not in words
            function = words[words.index("(") - 1] if inside else ""
            continue
        if not inside:
            continue
        spaced = [False]
        for before, after in pairwise(tokens):
            spaced.append(before.end != after.start)
        found.append(
            Statement(
                function,
                tokens[0].start[0],
                tokens[-1].end[0],
                indent,
                words,
                tuple(spaced),
            )
        )
    return with_ends(found)


def with_ends(found: Sequence[Statement]) -> list[Statement]:
    """Marks the last statement of each function."""
    marked = []
    for index, one in enumerate(found):
        following = found[index + 1] if index + 1 < len(found) else None
        ends = following is None or following.function != one.function
        if ends and one.indent == 4:
            one = Statement(
                one.function, one.line, one.last_line, one.indent, one.tokens, one.spaced, True
            )
        marked.append(one)
    return marked


def logical_lines(text: str) -> Iterator[list[TokenInfo]]:
    line: list[TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == NEWLINE:
            if line:
                yield line
            line = []
        elif token.type not in LAYOUT:
            line.append(token)


def casts(tokens: Sequence[str]) -> set[int]:
    """The indexes of the brackets ``<`` and ``>`` of casts."""
    found: set[int] = set()
    index = 0
    while index < len(tokens):
        before = tokens[index - 1] if index else "("
        if tokens[index] == "<" and not is_operand(before):
            close = tokens.index(">", index)
            found |= {index, close}
            index = close
        index += 1
    return found


def is_operand(token: str) -> bool:
    """Returns true if an expression may end with this token."""
    if token in {")", "]"}:
        return True
    return (token[0].isalnum() or token[0] == "_") and token not in WORDS
