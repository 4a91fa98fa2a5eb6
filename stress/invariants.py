"""The mapping of the invariants to the suites, tests and known bugs of each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.suites.invariants import Invariant, table
from pulsar_ml.suites.registry import SUITES
from stress.contracts import with_contracts
from stress.mutants.catalogue import CATALOGUE

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "invariants.md"

INTRODUCTION = """# Invariants

The ids by which headers, suites, violations and mutants name an invariant. *Always* means at every
moment that another thread can see outside a lock that is named; *quiet* means while no operation is
under way; *progress* means in the end. A violation row carries one of these ids or one of a
structure's own (`OP-1`, `MQ-2`, ...), whose sentence is on the structure's page.

*Checked by* names suites (each runs on real threads and in the engine: `pulsar-ml run
SUITE`) and tests. *Known bugs* are mutants that break the invariant and that its suite must report.

`python -m stress invariants --write` makes this page of `pulsar_ml/suites/invariants.toml`, the
suites and the catalogue of mutants.
"""


def suites_of(invariant: Invariant, suites: Mapping[str, Suite]) -> list[str]:
    return [name for name, suite in suites.items() if invariant.id in suite.invariants]


def mutants_of(invariant: Invariant) -> list[str]:
    return [
        mutant.id for mutant in CATALOGUE if invariant.id in re.findall(r"[\w-]+", mutant.breaks)
    ]


def complaints(
    invariants: Sequence[Invariant], suites: Mapping[str, Suite], root: Path = ROOT
) -> Iterator[str]:
    """The mistakes of the mapping, a sentence each."""
    for invariant in invariants:
        name = invariant.id
        suites_there = suites_of(invariant, suites)
        checked = bool(suites_there or invariant.tests or invariant.note)
        if not checked and not invariant.waits and not invariant.none:
            yield f"{name} has no check and no reason; give it tests, or say why there are none"
        if invariant.none and checked:
            yield f"{name} is checked, so none={invariant.none!r} is wrong"
        if invariant.waits and (suites_there or invariant.waits in suites):
            yield f"{name} waits for {invariant.waits}, which exists; name its checks instead"
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
    checks = [f"`{name}`" for name in suites_of(invariant, suites)]
    for test in invariant.tests:
        file, _, function = test.partition("::")
        checks.append(f"[{function.removeprefix('test_')}](../{file})")
    clauses = [", ".join(checks)] if checks else []
    if invariant.note:
        clauses.append(invariant.note)
    if invariant.waits:
        clauses.append(f"waits for the structure `{invariant.waits}`, which does not exist yet")
    return "; ".join(clauses) or invariant.none


def page(invariants: Sequence[Invariant], suites: Mapping[str, Suite]) -> str:
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
            invariant.id,
            invariant.text,
            invariant.when,
            checked_by(invariant, suites),
            " ".join(mutants_of(invariant)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def current_page() -> str:
    """The page that belongs to the table. UsageError with every complaint about the mapping."""
    invariants = table().general
    if found := list(complaints(invariants, SUITES)):
        raise UsageError("\n".join(found))
    return page(invariants, SUITES)


def current_files() -> dict[Path, str]:
    """Every file that is written from the table, with the text that it should have."""
    return {PAGE: current_page()} | with_contracts(table(), ROOT)
