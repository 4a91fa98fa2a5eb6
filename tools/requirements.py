"""Prints what the project and its extras need, one requirement a line, from pyproject.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]
print(*project["dependencies"], *sum(project["optional-dependencies"].values(), []), sep="\n")
