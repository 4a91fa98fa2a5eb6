"""Loads plain and checked extension modules from files."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from pulsar_ml.input_files import utf8_path


def load_extension(path: Path, name: str | None = None) -> ModuleType:
    """Import the plain extension module at ``path``, for real threads, and return it.

    ``name`` is the module's name; its last part must be the one with which the module was built.
    By default it is derived from the path. Loading a path twice returns the same module. Raises
    ImportError when there is no such file.
    """
    path = Path(path).resolve()
    if not path.exists():
        raise ImportError(f"no extension module at {path}")
    stem = path.name.partition(".")[0]
    name = name or f"pulsar_ml_loaded_{hashlib.sha256(os.fsencode(path)).hexdigest()[:8]}.{stem}"
    if name in sys.modules:
        return sys.modules[name]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader, origin=str(path))
    if spec is None:
        raise ImportError(f"{path} is no extension module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_checked(path: Path, name: str | None = None) -> ModuleType:
    """Import the checked extension module at ``path``, after the engine, and return it.

    Its subjects run under the engine. The arguments and errors are those of :func:`load_extension`;
    a path that is not UTF-8 is a UsageError.

    Warns (:class:`pulsar_ml.harness.building.unseen.UnseenCodeWarning`) of code in the module that
    the engine cannot see.
    """
    import pulsar_ml.harness.engine  # noqa: F401
    from pulsar_ml.harness.building.unseen import warn_of_unseen_code

    module = load_extension(utf8_path(Path(path).resolve()), name)
    warn_of_unseen_code(Path(path).resolve())
    return module
