"""SC and TSO by state exploration: the outcomes of every interleaving, with store buffers for TSO.

Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO", CACM 2010: each thread has a first-in
first-out buffer of its stores. A read looks into its own buffer first; read-modify-writes, stores
that are seq_cst, seq_cst fences and the mutex wait for an empty buffer.
"""

from __future__ import annotations

from typing import TypeVar

from tests.memory_model.litmus import (
    CELLS,
    FAILED_CAS,
    FENCE,
    LOAD,
    SEQ_CST,
    STORE,
    Litmus,
    Operation,
    Outcome,
)

T = TypeVar("T")
Buffer = tuple[tuple[int, int], ...]  # cells and values, oldest first

# Positions, results, memory, owner of the mutex (-1: none), buffers.
State = tuple[
    tuple[int, ...], tuple[tuple[int, ...], ...], tuple[int, ...], int, tuple[Buffer, ...]
]


def outcomes(program: Litmus, *, buffered: bool) -> set[Outcome]:
    """Return the outcomes under TSO (``buffered``) or sequential consistency."""
    n = len(program.threads)
    first: State = ((0,) * n, ((),) * n, (0,) * CELLS, -1, ((),) * n)
    seen, waiting, found = {first}, [first], set()
    while waiting:
        state = waiting.pop()
        following = successors(program, state, buffered)
        if not following:
            found.add((state[1], state[2]))
        for each in following:
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return found


def successors(program: Litmus, state: State, buffered: bool) -> list[State]:
    """Return the states after one step of a thread or of a buffer."""
    positions, results, memory, owner, buffers = state
    found: list[State] = []
    for t, calls in enumerate(program.threads):
        if buffers[t]:
            (cell, value), *rest = buffers[t]
            drained = replaced(buffers, t, tuple(rest))
            found.append((positions, results, replaced(memory, cell, value), owner, drained))
        if positions[t] < len(calls):
            result = step(calls[positions[t]], t, memory, owner, buffers[t], buffered)
            if result is not None:
                value, memory_after, owner_after, buffer = result
                found.append(
                    (
                        replaced(positions, t, positions[t] + 1),
                        replaced(results, t, (*results[t], value)),
                        memory_after,
                        owner_after,
                        replaced(buffers, t, buffer),
                    )
                )
    return found


def step(
    call: Operation, t: int, memory: tuple[int, ...], owner: int, buffer: Buffer, buffered: bool
) -> tuple[int, tuple[int, ...], int, Buffer] | None:
    """Return result, memory, owner and buffer after a call; None while it has to wait."""
    if call.kind == LOAD:
        own = [value for cell, value in buffer if cell == call.cell]
        return (own[-1] if own else memory[call.cell]), memory, owner, buffer
    if call.kind == STORE and buffered and call.order != SEQ_CST:
        return 0, memory, owner, (*buffer, (call.cell, call.value))
    if call.kind == FENCE and call.order != SEQ_CST:
        return 0, memory, owner, buffer
    if buffer:
        return None
    match call.kind:
        case "store":
            return 0, replaced(memory, call.cell, call.value), owner, buffer
        case "lock":
            return None if owner >= 0 else (0, memory, t, buffer)
        case "unlock":
            return 0, memory, -1, buffer
        case "exchange":
            return memory[call.cell], replaced(memory, call.cell, call.value), owner, buffer
        case "cas":
            seen = memory[call.cell]
            if seen != call.expected:
                return seen | FAILED_CAS, memory, owner, buffer
            return seen, replaced(memory, call.cell, call.value), owner, buffer
    return 0, memory, owner, buffer


def replaced(values: tuple[T, ...], at: int, value: T) -> tuple[T, ...]:
    return (*values[:at], value, *values[at + 1 :])
