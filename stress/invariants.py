"""The table of invariants: what must hold, which suites and tests check it, which known bugs break it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "pulsar_ml" / "suites" / "invariants.toml"
PAGE = ROOT / "docs" / "invariants.md"
NUMBERS = range(1, 106)

INTRODUCTION = """# Invariants

The numbers by which headers, suites, violations and mutants name what must hold. *Always* means at every
moment that another thread can see outside a lock that is named; *quiet* means when no operation is under
way. A violation row carries one of these numbers or a structure's own (`OP-1`, `MQ-2`, ...), which its page
explains.

*Checked by* names suites (each runs on real threads and in the engine: `python -m stress run SUITE`) and
tests. *Known bugs* are mutants that break the number and that its suite must report.

This page is made by `python -m stress invariants --write` from `pulsar_ml/suites/invariants.toml`, the suites and the
catalogue of mutants.
"""


@dataclass(frozen=True, slots=True)
class Invariant:
    """One number: what must hold and, beside the suites that list it, what checks it or why nothing does."""

    number: int
    group: str
    text: str
    when: str
    tests: tuple[str, ...] = ()
    note: str = ""
    waits: str = ""
    none: str = ""


def read_invariants(text: str) -> list[Invariant]:
    """All invariants of a data file, in their order. UsageError when numbers are missing or unknown."""
    found = [
        Invariant(
            int(name[1:]),
            **{key: tuple(value) if key == "tests" else value for key, value in given.items()},
        )
        for name, given in tomllib.loads(text).items()
    ]
    numbers = [invariant.number for invariant in found]
    if numbers != list(NUMBERS):
        raise UsageError(
            f"the invariants are numbered {numbers}; they should be I1 to I{NUMBERS[-1]} in order"
        )
    return found


def suites_of(invariant: Invariant, suites: Mapping[str, Suite]) -> list[str]:
    return [name for name, suite in suites.items() if f"I{invariant.number}" in suite.invariants]


def mutants_of(invariant: Invariant) -> list[str]:
    return [
        mutant.id
        for mutant in CATALOGUE
        if f"I{invariant.number}" in re.findall(r"\w+", mutant.breaks)
    ]


def complaints(
    invariants: list[Invariant], suites: Mapping[str, Suite], root: Path = ROOT
) -> Iterator[str]:
    """What is wrong with the mapping, a sentence each."""
    for invariant in invariants:
        name = f"I{invariant.number}"
        checked = bool(suites_of(invariant, suites) or invariant.tests or invariant.note)
        reasons = [reason for reason in (invariant.waits, invariant.none) if reason]
        if not checked and not reasons:
            yield f"{name} has no check and no reason; give it tests, or say why there are none"
        if invariant.none and checked:
            yield f"{name} is checked, so none={invariant.none!r} is wrong"
        there = suites_of(invariant, suites) or invariant.waits in suites
        if invariant.waits and (there or (root / f"stress/{invariant.waits}.py").exists()):
            yield f"{name} waits for {invariant.waits}, which is there; name its checks and delete the line"
        for test in invariant.tests:
            if not test_exists(test, root):
                yield f"{name} names {test}, which does not exist"


def test_exists(test: str, root: Path = ROOT) -> bool:
    file, _, function = test.partition("::")
    if not (root / file).is_file():
        return False
    tree = ast.parse((root / file).read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body)


def checked_by(invariant: Invariant, suites: Mapping[str, Suite]) -> str:
    parts = [f"`{name}`" for name in suites_of(invariant, suites)]
    parts += [
        f"[{test.partition('::')[2].removeprefix('test_')}](../{test.partition('::')[0]})"
        for test in invariant.tests
    ]
    said = ", ".join(parts)
    if invariant.note:
        said += ("; " if said else "") + invariant.note
    if invariant.waits:
        said += (
            "; " if said else ""
        ) + f"waits for the structure `{invariant.waits}`, which does not exist here yet"
    return said or invariant.none


def page(invariants: list[Invariant], suites: Mapping[str, Suite]) -> str:
    """The page in Markdown."""
    lines = [INTRODUCTION]
    group = ""
    for invariant in invariants:
        if invariant.group != group:
            group = invariant.group
            lines += [
                f"\n## {group}\n",
                "| | what must hold | when | checked by | known bugs |",
                "| --- " * 5 + "|",
            ]
        cells = (
            f"I{invariant.number}",
            invariant.text,
            invariant.when,
            checked_by(invariant, suites),
            " ".join(mutants_of(invariant)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def current_page() -> str:
    """The page as it should be. UsageError with every complaint about the mapping."""
    invariants = read_invariants(DATA.read_text())
    if found := list(complaints(invariants, SUITES)):
        raise UsageError("\n".join(found))
    return page(invariants, SUITES)
