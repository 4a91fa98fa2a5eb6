"""Digests of the sources on which a result depends: a result is void only if one of them changes.

Each digest is of declarations (:mod:`stress.mutants.sources.declarations`), so comments, layout,
moves and the names of modules change none.

* Code: the operations of a subject and all structures and primitives that they name, down to the
  headers. The harness that calls the operations is left out: the calls are compared as programs.
* Model: the module of a suite's model and the models that it imports. The checker is left out: the
  verdict on a history follows from the model, whichever way it is searched.
* Engine: all of its C. Its Python is left out: it passes options on and reads results.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

from stress.mutants.build import ROOT
from stress.mutants.sources.declarations import declarations

PACKAGE = ROOT / "pulsar_ml"
DIGITS = 12
NATIVE_ROOMS = {"operations", "structures", "sync"}
NAMED = re.compile(
    r"^from pulsar_ml\.(?P<module>[\w.]+) cimport"
    r'|^cdef extern from "pulsar_ml/(?P<header>[\w./]+)"'
    r'|^#\s*include "(?:pulsar_ml/)?(?P<include>[\w./]+)"',
    re.MULTILINE,
)


def short_digest(parts: Iterable[object]) -> str:
    return hashlib.sha256("\x1e".join(map(str, parts)).encode()).hexdigest()[:DIGITS]


def digest_of(paths: Iterable[Path]) -> str:
    """Digits of all declarations of these sources together."""
    every = (one for path in paths for one in declarations(path, path.read_text()))
    return short_digest(sorted(every))


def closure(start: Path, named: Callable[[Path], Iterable[Path]]) -> tuple[Path, ...]:
    """``start`` and the existing files that it names, directly or through others."""
    found: set[Path] = set()
    ahead = [start]
    while ahead:
        path = ahead.pop()
        if path not in found and path.exists():
            found.add(path)
            ahead += named(path)
    return tuple(sorted(found))


# Code ---------------------------------------------------------------------------------


def native_names(path: Path) -> Iterator[Path]:
    """The native sources below NATIVE_ROOMS that this one cimports or includes."""
    for match in NAMED.finditer(path.read_text()):
        if match["module"]:
            named = PACKAGE / f"{match['module'].replace('.', '/')}.pxd"
        else:
            below = match["header"] or match["include"]
            candidates = (PACKAGE / below, path.parent / below)
            named = next((at for at in candidates if at.exists()), PACKAGE / below)
        if named.relative_to(PACKAGE).parts[0] in NATIVE_ROOMS:
            yield named


@cache
def reached(subject: str) -> tuple[Path, ...]:
    """All native sources behind the operations of a subject."""
    return closure(PACKAGE / "operations" / f"{subject}.pxd", native_names)


@cache
def code_digest(subject: str) -> str:
    return digest_of(reached(subject))


# Models -------------------------------------------------------------------------------


def module_path(name: str) -> Path:
    path = ROOT / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imported_models(path: Path) -> Iterator[Path]:
    """The modules beside this one that it imports."""
    room = ".".join(path.parent.relative_to(ROOT).parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(room):
            yield module_path(str(node.module))
            yield from (module_path(f"{node.module}.{alias.name}") for alias in node.names)


@cache
def model_digest(module: str) -> str:
    """Digits of a model; "" without one."""
    return digest_of(closure(module_path(module), imported_models)) if module else ""


# The engine ---------------------------------------------------------------------------


@cache
def engine_sources() -> tuple[Path, ...]:
    """The C sources and headers of the engine, without what Cython generates."""
    room = PACKAGE / "harness" / "engine"
    found = (path for suffix in ("c", "h") for path in room.rglob(f"*.{suffix}"))
    return tuple(sorted(path for path in found if not path.with_suffix(".pyx").exists()))


# Engines whose samples are those of an older one: only searches with reduction, mode tso, the
# classes of waits and of allocations that fail, and the replay of several such allocations in one
# step differ. For both, `python -m tools.sweep_digest` prints 626def82b89273fb, and the samples of
# technique "fault" are the same.
SAME_SAMPLES = {"edc9589f2b32": "7c2b43474bc7"}


@cache
def engine_digest() -> str:
    found = digest_of(engine_sources())
    return SAME_SAMPLES.get(found, found)
