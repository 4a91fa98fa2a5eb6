"""The mistakes that automatic mutants make, and the places where they apply.

A mistake changes one statement. Nothing here depends on chance: the same sources give the same
mutants in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stress.mutants.automatic.statements import Statement, casts, is_operand

BOUNDARY = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
}
ATOMIC = re.compile(
    r"^(u8|i32|u32|i64|u64|ptr)_(load|store|cas_strong|cas_weak|exchange|fetch_add|fetch_sub)"
    r"_(acquire|release|acq_rel)$"
)
STORED = re.compile(r"^(u8|i32|u32|i64|u64|ptr)_store_|^mem(set|cpy|move)$|^fence_")
# Calls that a second time would give back, count, add or remove again.
TWICE = re.compile(
    r"fetch_|release|unlock|leave|give|notify|wake|pin$|recycle|retain|add|remove|drop|take|count"
)
HINTS = {"pause", "prefetch", "yield_cpu"}
STATUS = re.compile(r"^(status|PML_\w+|ACK_\w+|MAP_\w+)$")
LEAVING = {"return", "break", "continue"}
ASSIGNMENTS = {"+=", "-=", "|=", "&=", "^=", "//=", "*=", "<<=", ">>="}

# The operators by name, each with its sentence in the page.
OPERATORS = {
    "boundary": "A comparison is turned at its boundary: `<` and `<=`, `>` and `>=`, `==` and "
    "`!=`, `is` and `is not`.",
    "step left out": "`+ 1` or `- 1` in an expression becomes `+ 0` or `- 0`.",
    "step doubled": "`+ 1` or `- 1` in an expression becomes `+ 2` or `- 2`.",
    "change left out": "`+=`, `-=` or another change of a variable or field does nothing.",
    "change doubled": "`+=` or `-=` happens twice.",
    "store left out": "An assignment to a field or an element, or an atomic store, does nothing.",
    "call left out": "A call whose result nobody reads (a release, an unlock, a wake-up, a "
    "return to a pool, a fence) is not made.",
    "call doubled": "A call that counts, gives back, unlocks, wakes, adds or removes is made twice.",
    "return left out": "A return before the end of its function goes on with the next statement.",
    "status ignored": "A condition on a status or on a call is evaluated, and its branch is not "
    "taken.",
    "order relaxed": "An atomic that acquires or releases is relaxed.",
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """One change of a statement.

    Attributes:
        operator: one of OPERATORS.
        statement: the changed statement.
        change: the changed code in a few signs, such as "< to <=".
        new: the statement's new text; a whole statement, or the condition or the value of a head
            or a declaration (see :func:`expression`).
    """

    operator: str
    statement: Statement
    change: str
    new: str


def mistakes(found: Sequence[Statement]) -> Iterator[Mistake]:
    """All mistakes in these statements, in the order of the source."""
    for index, statement in enumerate(found):
        body = found[index + 1 :]
        yield from of_expression(statement)
        if statement.is_head:
            yield from of_head(statement, body)
        else:
            yield from of_statement(statement)


def expression(statement: Statement) -> tuple[int, int]:
    """The tokens from begin to end that are a condition or a value; an empty part for none."""
    tokens = statement.tokens
    if tokens[0] in {"if", "elif", "while"} and statement.is_head:
        return 1, len(tokens) - 1
    if statement.is_head:
        return 0, 0
    if tokens[0] == "return":
        return 1, len(tokens)
    equals = assignment(tokens)
    if tokens[0] == "cdef":
        plain = equals and "[" not in tokens[:equals] and "," not in tokens[:equals]
        alone = plain and not any(depth_one_comma(tokens, equals + 1))
        return (equals + 1, len(tokens)) if alone else (0, 0)
    if equals:
        return equals + 1, len(tokens)
    return (0, len(tokens)) if "(" in tokens else (0, 0)


def assignment(tokens: Sequence[str]) -> int:
    """The index of the sign of an assignment outside brackets; 0 for none."""
    depth = 0
    for index, token in enumerate(tokens):
        depth += (token in {"(", "["}) - (token in {")", "]"})
        if not depth and (token == "=" or token in ASSIGNMENTS):
            return index
    return 0


def depth_one_comma(tokens: Sequence[str], begin: int) -> Iterator[bool]:
    depth = 0
    for token in tokens[begin:]:
        depth += (token in {"(", "["}) - (token in {")", "]"})
        if not depth and token == ",":
            yield True


def of_expression(statement: Statement) -> Iterator[Mistake]:
    """Turned comparisons, changed steps and weaker orders."""
    begin, end = expression(statement)
    tokens, skipped = statement.tokens, casts(statement.tokens)
    whole = not statement.is_head and tokens[0] != "cdef"
    part = (0, len(tokens)) if whole else (begin, end)

    def changed(operator: str, change: str, index: int, new: str, drop: int = -1) -> Mistake:
        texts = {index: new} | ({drop: ""} if drop >= 0 else {})
        return Mistake(operator, statement, change, statement.text(*part, texts))

    for index in range(begin, end):
        token = tokens[index]
        after = tokens[index + 1] if index + 1 < end else ""
        if index in skipped:
            continue
        if token in BOUNDARY:
            yield changed("boundary", f"{token} to {BOUNDARY[token]}", index, BOUNDARY[token])
        elif token == "is" and after == "not":
            yield changed("boundary", "is not to is", index, "is", index + 1)
        elif token == "is":
            yield changed("boundary", "is to is not", index, "is not")
        elif token in {"+", "-"} and after == "1" and index and is_operand(tokens[index - 1]):
            yield changed("step left out", f"{token} 1 to {token} 0", index + 1, "0")
            yield changed("step doubled", f"{token} 1 to {token} 2", index + 1, "2")
        elif ATOMIC.match(token) and after == "(":
            yield changed("order relaxed", token, index, weak_name(token))


def weak_name(function: str) -> str:
    return f"weak_{function}"


def of_head(statement: Statement, body: Sequence[Statement]) -> Iterator[Mistake]:
    """A condition whose branch is not taken."""
    tokens = statement.tokens
    if tokens[0] not in {"if", "elif"} or not body:
        return
    alone = body[0].tokens[0] == "return" and (
        len(body) == 1 or body[1].indent < body[0].indent or body[1].function != body[0].function
    )
    if alone:
        return  # the return left out is the same
    condition = tokens[1:-1]
    if any(STATUS.match(token) for token in condition) or is_call(condition):
        text = statement.text(1, len(tokens) - 1)
        yield Mistake("status ignored", statement, "the branch is not taken", f"({text}) and False")


def is_call(tokens: Sequence[str]) -> bool:
    """Returns true for a call, or its negation, and nothing else."""
    if tokens[:1] == ("not",):
        tokens = tokens[1:]
    return len(tokens) > 2 and tokens[1] == "(" and tokens[-1] == ")" and is_operand(tokens[0])


def of_statement(statement: Statement) -> Iterator[Mistake]:
    """Changes of a whole statement: it is left out, or done twice."""
    tokens = statement.tokens
    text = statement.text()
    short = text if len(text) <= 40 else text[:37] + "..."

    def left_out(operator: str) -> Mistake:
        return Mistake(operator, statement, short, "pass")

    def doubled(operator: str) -> Mistake:
        return Mistake(operator, statement, short, f"{text}; {text}")

    if tokens[0] == "return":
        if not statement.is_last:
            yield left_out("return left out")
        return
    if tokens[0] in {"cdef", "pass", "break", "continue"}:
        return
    equals = assignment(tokens)
    if equals and tokens[equals] in ASSIGNMENTS:
        yield left_out("change left out")
        if tokens[equals] in {"+=", "-="}:
            yield doubled("change doubled")
    elif equals:
        if "." in tokens[:equals] or "[" in tokens[:equals]:
            yield left_out("store left out")
    elif is_call(tokens):
        if STORED.match(tokens[0]) and not tokens[0].startswith("fence"):
            yield left_out("store left out")
            return
        if tokens[0] in HINTS:
            return
        yield left_out("call left out")
        if TWICE.search(tokens[0]):
            yield doubled("call doubled")
