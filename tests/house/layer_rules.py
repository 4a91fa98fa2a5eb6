"""The rules about the layers of a search, from commands down to the harness, and about PySpark."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tests.house.architecture_rules import Sources, allow, forbid, under
from tests.house.source_imports import is_within, python_imports

# The packages of a search, the highest first; each may import those to its right.
LAYERS = ("cli", "sweep", "distributed", "campaign", "harness")


def layers_look_down(sources: Sources) -> list[str]:
    found = []
    for at, layer in enumerate(LAYERS):
        above = tuple(f"pulsar_ml.{name}" for name in LAYERS[:at])
        found += forbid(sources, (f"pulsar_ml/{layer}",), above)
    beside = ("report", "simulate", "managed_ledger", "config", "metrics", "suites")
    folders = tuple(f"pulsar_ml/{name}" for name in beside)
    return found + forbid(sources, folders, ("pulsar_ml.cli", "pulsar_ml.sweep"))


def campaign_parses_no_options(sources: Sources) -> list[str]:
    return forbid(sources, ("pulsar_ml/campaign",), ("click", "pulsar_ml.report"))


def suites_know_the_campaign_only(sources: Sources) -> list[str]:
    known = ("pulsar_ml.suites", "pulsar_ml.campaign", "pulsar_ml.errors")
    return allow(sources, ("pulsar_ml/suites",), known)


def pyspark_is_for_spark(sources: Sources) -> list[str]:
    elsewhere = tuple(
        path for path in sources if not path.startswith(("pulsar_ml/distributed/", "tests/spark/"))
    )
    return forbid(sources, elsewhere, ("pyspark", "py4j"))


def at_import(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The import statements that run when a module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from at_import(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from at_import(ast.iter_child_nodes(node))


def pyspark_is_imported_late(sources: Sources) -> list[str]:
    """Imports of PySpark stand in functions, or are for type checkers only."""
    return [
        f"{path} imports {module} at once"
        for path, text in under(sources, "pulsar_ml/distributed", ends=(".py",))
        for node in at_import(ast.parse(text).body)
        for module in sorted(python_imports(path, ast.unparse(node)))
        if is_within(module, ("pyspark", "py4j"))
    ]
