"""Prints the requirements of the project and its extras, one a line, from pyproject.toml.

An interpreter without the GIL gets no DuckDB: it has no wheel there, and compiling its
sources takes longer than all else. The header of the tests says what that leaves out.
"""

from __future__ import annotations

import sysconfig
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]
extras = chain.from_iterable(project["optional-dependencies"].values())
unavailable = ("duckdb",) if sysconfig.get_config_var("Py_GIL_DISABLED") else ()
for requirement in (*project["dependencies"], *extras):
    if not requirement.startswith(unavailable):
        print(requirement)
