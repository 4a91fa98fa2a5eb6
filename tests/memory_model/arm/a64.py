"""A64 instructions, and those to which compilers translate the atomic operations of C11."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from tests.memory_model.litmus import (
    ACQ_REL,
    ACQUIRE,
    CAS,
    EXCHANGE,
    FENCE,
    LOAD,
    NAMES,
    RELAXED,
    RELEASE,
    SEQ_CST,
    STORE,
    Litmus,
    Operation,
)

# The bits of arm.hpp.
ACQUIRES, ACQUIRES_PC, RELEASES, IS_ONE, IS_FULL, IS_LD, IS_ST = (1 << bit for bit in range(7))
DEPENDENCIES = {"addr": 1 << 7, "data": 1 << 8, "ctrl": 1 << 9}

# The kind of access and the properties of each instruction. A pair is a loop of exclusives around
# the exchange, without a branch that a later store depends on.
LOADS = {"ldr": 0, "ldar": ACQUIRES, "ldapr": ACQUIRES_PC}
STORES = {"str": 0, "stlr": RELEASES}
BARRIERS = {"dmb ish": IS_FULL, "dmb ishld": IS_LD, "dmb ishst": IS_ST, "nothing": 0}
PAIRS = {
    f"ld{a}xr/st{r}xr": acquires | releases
    for (a, acquires), (r, releases) in product(
        (("", 0), ("a", ACQUIRES)), (("", 0), ("l", RELEASES))
    )
}
SUFFIXES = {"": 0, "a": ACQUIRES, "l": RELEASES, "al": ACQUIRES | RELEASES}
PROPERTIES = {
    **LOADS,
    **STORES,
    **BARRIERS,
    **PAIRS,
    **{name + suffix: SUFFIXES[suffix] | IS_ONE for name in ("swp", "cas") for suffix in SUFFIXES},
}

LLSC, LSE, RCPC = TARGETS = ("armv8-a", "armv8.1-a", "armv8.3-a")
"""Options ``-march``: loops of exclusives, exchanges by one instruction, and these with LDAPR."""

ACCESSES = {
    **{(LOAD, order): "ldar" for order in (ACQUIRE, SEQ_CST)},
    **{(STORE, order): "stlr" for order in (RELEASE, SEQ_CST)},
    (LOAD, RELAXED): "ldr",
    (STORE, RELAXED): "str",
    (FENCE, RELAXED): "nothing",
    (FENCE, ACQUIRE): "dmb ishld",
    **{(FENCE, order): "dmb ish" for order in (RELEASE, ACQ_REL, SEQ_CST)},
}
SUFFIX_OF = {RELAXED: "", ACQUIRE: "a", RELEASE: "l", ACQ_REL: "al", SEQ_CST: "al"}

Translation = Mapping[tuple[str, int], str]
"""The instructions of each kind of operation and order."""


def translation(target: str) -> Translation:
    """Return the instructions that compilers use on a target."""
    found = dict(ACCESSES)
    if target == RCPC:
        found[LOAD, ACQUIRE] = "ldapr"
    for kind, name in ((EXCHANGE, "swp"), (CAS, "cas")):
        for order, suffix in SUFFIX_OF.items():
            acquires, releases = "a" * ("a" in suffix), "l" * ("l" in suffix)
            pair = f"ld{acquires}xr/st{releases}xr"
            found[kind, order] = pair if target == LLSC else name + suffix
    return found


# Translations that are wrong in one place: the comparison has to notice each of them.
WRONG: dict[str, tuple[str, Translation]] = {
    "a seq_cst store is plain": (LLSC, {(STORE, SEQ_CST): "str"}),
    "a release store is plain": (LLSC, {(STORE, RELEASE): "str"}),
    "an acquire load is plain": (LLSC, {(LOAD, ACQUIRE): "ldr"}),
    "a seq_cst load is LDAPR": (RCPC, {(LOAD, SEQ_CST): "ldapr"}),
    "a release fence is nothing": (LLSC, {(FENCE, RELEASE): "nothing"}),
    "a release fence is DMB ISHST": (LLSC, {(FENCE, RELEASE): "dmb ishst"}),
    "an acquire fence is nothing": (LLSC, {(FENCE, ACQUIRE): "nothing"}),
    "a seq_cst fence is DMB ISHLD": (LLSC, {(FENCE, SEQ_CST): "dmb ishld"}),
    "an exchange does not acquire": (
        LLSC,
        {(EXCHANGE, ACQUIRE): "ldxr/stxr", (EXCHANGE, ACQ_REL): "ldxr/stlxr"},
    ),
    "an exchange does not release": (
        LSE,
        {(EXCHANGE, RELEASE): "swp", (EXCHANGE, ACQ_REL): "swpa"},
    ),
    "a compare-and-swap does not acquire": (
        LSE,
        {(CAS, ACQUIRE): "cas", (CAS, ACQ_REL): "casl", (CAS, SEQ_CST): "casl"},
    ),
    "a compare-and-swap does not release": (
        LLSC,
        {(CAS, RELEASE): "ldxr/stxr", (CAS, ACQ_REL): "ldaxr/stxr"},
    ),
}


def wrong_translation(name: str) -> Translation:
    target, changes = WRONG[name]
    return {**translation(target), **changes}


@dataclass(frozen=True, slots=True)
class Assembly:
    """A program of A64: for each thread its calls, each with the properties of its instructions."""

    program: Litmus
    properties: tuple[tuple[int, ...], ...]


def translated(program: Litmus, by: Translation) -> Assembly:
    """Return the instructions of a program of accesses and fences."""
    return Assembly(
        program,
        tuple(
            tuple(PROPERTIES[by[call.kind, call.order]] for call in calls)
            for calls in program.threads
        ),
    )


def assembled(*threads: str) -> Assembly:
    """Read a program of A64: threads of instructions such as ``ldar y; dmb ish; str x 1 data``.

    An access names its cell and the value that it stores, a CAS the one it expects before that. A
    dependency is on the thread's last load.
    """
    calls, properties = [], []
    for text in threads:
        rows = [instruction(words.split()) for words in text.split(";")]
        calls.append(tuple(call for call, _ in rows))
        properties.append(tuple(each for _, each in rows))
    return Assembly(Litmus(tuple(calls)), tuple(properties))


def instruction(words: list[str]) -> tuple[Operation, int]:
    if words[0] == "dmb":
        return Operation(FENCE), PROPERTIES[" ".join(words)]
    name, cell, *rest = words
    dependency = DEPENDENCIES[rest.pop()] if rest and rest[-1] in DEPENDENCIES else 0
    values = list(map(int, rest))
    kind = EXCHANGE
    if name in LOADS:
        kind = LOAD
    elif name in STORES:
        kind = STORE
    elif name.startswith("cas"):
        kind = CAS
    expected = values.pop(0) if kind == CAS else 0
    value = values.pop(0) if kind != LOAD else 0
    return Operation(kind, NAMES.index(cell), RELAXED, value, expected), (
        PROPERTIES[name] | dependency
    )
