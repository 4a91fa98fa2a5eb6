"""Models that ship, by the name that the command line takes.

Operations by name, with their arguments and results. A result that a model does not need (that of a write,
say) may be anything.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.models.cells import CasRegister, Counter, Lock, Register
from pulsar_ml.harness.models.collections import EvictingMap, KeyValueMap, Queue, Set, Stack

MODELS: Mapping[str, Callable[[], Any]] = {
    "register": Register,
    "cas-register": CasRegister,
    "map": KeyValueMap,
    "evicting-map": EvictingMap,
    "set": Set,
    "queue": Queue,
    "stack": Stack,
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
    "Queue",
    "Register",
    "Set",
    "Stack",
    "model_named",
]


def model_named(name: str) -> Any:
    """The model called ``name``: one that ships, or ``module:object``, a model or something that makes one.

    Raises UsageError when there is none.
    """
    if ":" not in name:
        if name not in MODELS:
            raise UsageError(
                f"there is no model {name!r}; use one of {', '.join(MODELS)}, or module:object for your own"
            )
        return MODELS[name]()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise UsageError(f"the module of the model {name!r} cannot be imported: {error}") from error
    except AttributeError:
        raise UsageError(f"module {module} has no {attribute!r} to be a model") from None
    if isinstance(found, type) or (callable(found) and not hasattr(found, "step")):
        found = found()
    if not (hasattr(found, "init") and hasattr(found, "step")):
        raise UsageError(f"{name!r} is no model: a model has init() and step(); this is {found!r}")
    return found
