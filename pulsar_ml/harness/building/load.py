"""Loads extension modules from files, plain ones and checked ones."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def load_extension(path: Path, name: str | None = None) -> ModuleType:
    """Import the extension module at ``path`` under ``name`` (default: its file's stem).

    The last part of the name must be the one it was built with. Loading a path twice gives the
    same module. Raises ImportError when there is no such file.
    """
    path = Path(path).resolve()
    if not path.exists():
        raise ImportError(f"no extension module at {path}")
    stem = path.name.partition(".")[0]
    name = name or f"pulsar_ml_loaded_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}.{stem}"
    if name in sys.modules:
        return sys.modules[name]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_checked(path: Path, name: str | None = None) -> ModuleType:
    """Import the checked module at ``path``, with the engine loaded before it.

    Warns (:class:`pulsar_ml.harness.building.unseen.UnseenCodeWarning`) of code in the module that the
    engine cannot see.
    """
    import pulsar_ml.harness.engine  # noqa: F401
    from pulsar_ml.harness.building.unseen import warn_of_unseen_code

    module = load_extension(path, name)
    warn_of_unseen_code(Path(path).resolve())
    return module
