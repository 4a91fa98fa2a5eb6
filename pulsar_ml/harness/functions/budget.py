"""Budgets of a test function: a number of executions, a time, or both, whichever ends first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NO_LIMIT = 1 << 40  # executions, where a time ends them
BUDGETS = ("executions", "seconds")


def with_budget(options: Mapping[str, Any], default: int) -> dict[str, Any]:
    """Return options with a number of executions: ``default`` unless they have a budget."""
    timed = options.get("seconds") is not None
    return {"executions": NO_LIMIT if timed else default, **options}


def replacing(own: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """Return a test's own options with others in their place: any budget replaces all its own."""
    if any(name in others for name in BUDGETS):
        own = {name: value for name, value in own.items() if name not in BUDGETS}
    return {**own, **others}
