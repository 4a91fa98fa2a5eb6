"""The imports of source files, read from their text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter


def python_imports(path: str, text: str) -> set[str]:
    """Modules that a Python file names in import statements, at any depth."""
    package = path.split("/")[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def cython_imports(text: str) -> set[str]:
    """Modules that a Cython file imports, cimports or includes, by line."""
    found: set[str] = set()
    for line in text.splitlines():
        if match := re.match(r"\s*from\s+([\w.]+)\s+c?import\s+(.*)", line):
            names = re.findall(r"(\w+)(?:\s+as\s+\w+)?\s*(?:,|$)", match[2])
            found |= {match[1]} | {f"{match[1]}.{name}" for name in names}
        elif match := re.match(r"\s*c?import\s+([\w., ]+)", line):
            found |= {name.split()[0] for name in match[1].split(",") if name.strip()}
        elif match := re.match(r"\s*include\s+[\"'](.*)[\"']", line):
            found.add("include " + match[1])
    return found


def imports(path: str, text: str) -> set[str]:
    return (
        cython_imports(text)
        if path.endswith((".pyx", ".pxd", ".pxi"))
        else python_imports(path, text)
    )


def is_within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def imported_modules(path: str, text: str, modules: Mapping[str, str]) -> set[str]:
    """The modules that a file imports.

    ``from package import module`` is an import of the module, not of the package.
    """
    names = imports(path, text)
    if path.endswith(".pyx"):  # A name that is cimported may be declared in a .pxd file only.
        return {
            name for name in names if not modules.get(name, "__init__.py").endswith("__init__.py")
        }
    packages = {name.rpartition(".")[0] for name in names}
    found = {name for name in names if name in modules and name not in packages}
    defining = {name.rpartition(".")[0] for name in names if name not in modules}
    return found | (defining & set(modules))


def import_cycle(below: Mapping[str, set[str]]) -> list[str]:
    """One cycle of a graph, as a complaint; an empty list when there is none."""
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        return ["import cycle: " + " <- ".join(error.args[1])]
    return []
