"""Computes how many values are on a frame's stack before each instruction of a code object.

From 3.12 on a frame does not say where its stack ends when the interpreter announces an
instruction; the depth does. The compiler gives each instruction one depth, however it is reached.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType

NO_NEXT = {
    "RETURN_VALUE",
    "RETURN_CONST",
    "RAISE_VARARGS",
    "RERAISE",
    "JUMP_FORWARD",
    "JUMP_BACKWARD",
    "JUMP_BACKWARD_NO_INTERRUPT",
}  # what follows such an instruction is reached by jumps only
JUMPS = {*dis.hasjrel, *dis.hasjabs} - {dis.opmap["END_ASYNC_FOR"]}  # 3.14's names its loop


def stack_depths(code: CodeType) -> list[int]:
    """Return the depth before each unit of a code object; 0 for those that are never reached."""
    depths = [0] * (len(code.co_code) // 2)
    for offset, depth in reached_depths(code).items():
        depths[offset // 2] = depth
    return depths


def reached_depths(code: CodeType) -> dict[int, int]:
    """Return the depth before each instruction that can be reached, by its offset.

    Raises ValueError when two ways to an instruction differ in depth.
    """
    following = {}
    instructions = list(dis.get_instructions(code))
    for each, after in zip(instructions, [*instructions[1:], None], strict=True):
        following[each.offset] = each, after.offset if after else None
    found: dict[int, int] = {}
    waiting = [(0, 0), *handlers(code)]
    while waiting:
        offset, depth = waiting.pop()
        if offset in found:
            if found[offset] != depth:
                raise ValueError(
                    f"{code.co_qualname}: the instruction at {offset} is reached with "
                    f"{found[offset]} and with {depth} values"
                )
            continue
        found[offset] = depth
        each, next_offset = following[offset]
        argument = each.arg if each.opcode >= dis.HAVE_ARGUMENT else None
        if each.opcode in JUMPS:
            assert isinstance(each.argval, int)
            taken = dis.stack_effect(each.opcode, argument, jump=True)
            waiting.append((each.argval, depth + taken))
        if each.opname not in NO_NEXT and next_offset is not None:
            effect = dis.stack_effect(each.opcode, argument, jump=False)
            if each.opname == "RETURN_GENERATOR":
                effect = 1  # the value that is sent first; 3.12 has it counted nowhere
            waiting.append((next_offset, depth + effect))
    return found


def handlers(code: CodeType) -> Iterator[tuple[int, int]]:
    """Yield offset and depth of each handler of exceptions: the table is one of the code object."""
    data = iter(code.co_exceptiontable)

    def number(first: int) -> int:
        value = first & 63
        while first & 64:
            first = next(data)
            value = value << 6 | first & 63
        return value

    for first in data:
        number(first)
        number(next(data))
        target = number(next(data)) * 2
        packed = number(next(data))
        yield target, (packed >> 1) + (packed & 1) + 1
