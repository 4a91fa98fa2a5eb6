"""Prints the requirements of the project and its extras, one a line, from pyproject.toml."""

from __future__ import annotations

import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]
extras = chain.from_iterable(project["optional-dependencies"].values())
print(*project["dependencies"], *extras, sep="\n")
