"""The recipe of a subject from signatures: the call of ``operations`` as JSON has it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pulsar_ml.harness.subjects.recipe import Recipe


def recipe_of_operations(path: Path, options: Mapping[str, Any]) -> Recipe:
    """The recipe of a call of :func:`operations`, whose arguments are ``options``."""
    signatures = [
        (name, value, None) if isinstance(value, str) else (name, value[0], list(value[1].items()))
        for name, value in options["signatures"].items()
    ]
    plain = {
        **options,
        "signatures": signatures,
        "model": reference(options["model"]),
        "into": str(Path(options["into"]).resolve()),
        "one_thread": lists(options["one_thread"]),
        "flags": list(options["flags"]),
    }
    return Recipe.of("operations", path, plain)


def lists(groups: str | Sequence[str | Sequence[str]]) -> Any:
    if isinstance(groups, str):
        return [groups]
    return [group if isinstance(group, str) else list(group) for group in groups]


def reference(model: Any) -> str | None:
    """Return the name by which :func:`model_named` finds a model; None for no model, or no name."""
    if model is None or isinstance(model, str):
        return model
    name = getattr(model, "__qualname__", "")
    module = sys.modules.get(str(getattr(model, "__module__", "")))
    if module is None or getattr(module, name, None) is not model:
        return None
    try:
        file = inspect.getsourcefile(module)
    except TypeError:  # of no file
        return None
    return f"{Path(file).resolve()}:{name}" if file and file.endswith(".py") else None
