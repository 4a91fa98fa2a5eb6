"""Every suite of the registry, with a model that refuses whatever the core answers.

A world that asks the model of a suite reports each of these at once; one that does not is silent.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.suites.registry import SUITES as TRUE

NO_STATUS = -1_000  # that no operation has


def contrary(model: Any) -> type[Any]:
    """The model with wrong answers, which refuses right ones."""

    class Contrary(model):  # type: ignore[misc]
        def step(self, operation: str, arguments: Sequence[int], **more: Any) -> Any:
            _, words = super().step(operation, arguments, **more)
            return NO_STATUS, words

        def concurrent(self, operation: str, arguments: Sequence[int], **more: Any) -> bool:
            super().concurrent(operation, arguments, **more)
            return False

    return Contrary


def suite_of(suite: Suite) -> Suite:
    """The suite with the contrary of its model, in a module that this module makes."""
    name = f"{__name__}.{suite.name}"
    module = ModuleType(name)
    model = importlib.import_module(suite.model).Model
    module.Model = contrary(model)  # type: ignore[attr-defined]
    sys.modules[name] = module
    return dataclasses.replace(suite, model=name)


SUITES = {suite.name: suite_of(suite) for suite in TRUE.values()}
