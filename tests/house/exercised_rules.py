"""The rule of the suites: each native function is reached from some suite's operations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.house.architecture_rules import Sources, under
from tests.house.native_rules import strip

FUNCTION = re.compile(r"^cdef (?:inline )?[^(=\n]*?\b(\w+)\(", re.MULTILINE)
CIMPORT = re.compile(r"^from [\w.]+ cimport (\([^)]*\)|[^\n]*)", re.MULTILINE)


def functions(text: str) -> Iterator[tuple[str, str]]:
    """Yields the name of each function of a source and the code from there to the next one."""
    starts = list(FUNCTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=False):
        yield start[1], text[start.end() : end]


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def native_functions_are_exercised(sources: Sources) -> list[str]:
    places: dict[str, str] = {}
    calls: dict[str, set[str]] = {}
    for path, text in under(sources, "pulsar_ml/structures", ends=(".pxd",)):
        for name, body in functions(strip(text)):
            places[name], calls[name] = path, words(body)
    reached: set[str] = set()
    waiting: set[str] = set()
    for _, text in under(sources, "pulsar_ml/operations", ends=(".pxd",)):
        waiting |= words(CIMPORT.sub("", strip(text))) & set(places)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting |= (calls[name] & set(places)) - reached
    return [
        f"{places[name]}: no operation of a suite reaches {name}; add one, with a step of its model"
        for name in sorted(set(places) - reached)
    ]
