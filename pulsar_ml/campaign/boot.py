"""Starts a module's ``main`` in a new interpreter that imports from the same places."""

from __future__ import annotations

import json
import sys

SCRIPT = """\
import importlib, json, sys
sys.path[:] = json.loads(sys.argv[1])
importlib.import_module(sys.argv[2]).main(*map(int, sys.argv[3:]))
"""


def boot_command(module: str, *numbers: int) -> list[str]:
    """Return the command that calls ``main`` of ``module`` with numbers, such as descriptors."""
    return [sys.executable, "-c", SCRIPT, json.dumps(sys.path), module, *map(str, numbers)]
