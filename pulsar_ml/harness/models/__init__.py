"""Models that ship, by the name that the command line takes.

Each model's docstring lists its operations with arguments and results. Results that a model does
not use, such as that of a write, may be anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.models.cells import CasRegister, Counter, Lock, Register
from pulsar_ml.harness.models.collections import (
    EvictingMap,
    KeyValueMap,
    Multiset,
    PriorityQueue,
    Queue,
    Set,
    Stack,
)
from pulsar_ml.harness.models.model import raised

MODELS: Mapping[str, Callable[[], Any]] = {
    "register": Register,
    "cas-register": CasRegister,
    "map": KeyValueMap,
    "evicting-map": EvictingMap,
    "set": Set,
    "multiset": Multiset,
    "queue": Queue,
    "stack": Stack,
    "priority-queue": PriorityQueue,
    "counter": Counter,
    "lock": Lock,
}

__all__ = [
    "MODELS",
    "CasRegister",
    "Counter",
    "EvictingMap",
    "KeyValueMap",
    "Lock",
    "Multiset",
    "PriorityQueue",
    "Queue",
    "Register",
    "Set",
    "Stack",
    "model_named",
]


def model_named(name: str) -> Any:
    """Return the model called ``name``: one that ships, ``module:object`` or ``FILE.py:object``.

    The object is a model, or a class or function that returns one. Raises UsageError when there is
    none.
    """
    if ":" not in name:
        if name not in MODELS:
            raise UsageError(
                f"there is no model {name!r}; use one of {', '.join(MODELS)}, or module:object for your own"
            )
        return MODELS[name]()
    place, _, attribute = name.rpartition(":")
    try:
        module = from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except UsageError:
        raise
    except Exception as error:  # the module's code may raise anything
        raise UsageError(
            f"the module of the model {name!r} cannot be imported: {raised(error)}"
        ) from error
    if not hasattr(module, attribute):
        raise UsageError(f"module {place} has no {attribute!r} to be a model")
    found = getattr(module, attribute)
    if isinstance(found, type) or (callable(found) and not hasattr(found, "step")):
        try:
            found = found()
        except Exception as error:
            raise UsageError(f"{name!r} makes no model: it raised {raised(error)}") from error
    if not (hasattr(found, "init") and hasattr(found, "step")):
        raise UsageError(f"{name!r} is no model: a model has init() and step(); this is {found!r}")
    return found


def from_file(path: Path) -> ModuleType:
    """Import a module from a file; it may import modules beside the file."""
    if not path.is_file():
        raise UsageError(f"there is no file {path} to have a model")
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.append(folder)  # last, so that its files hide no other modules
    name = f"pulsar_ml_model_{path.stem}"  # no other module has this name
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
