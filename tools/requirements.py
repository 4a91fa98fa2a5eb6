"""Prints the requirements of the project and its extras, one a line, from pyproject.toml.

An interpreter without the GIL gets no DuckDB: it has no wheel there, and compiling its
sources takes longer than all else. The header of the tests says what that leaves out. On 3.13
it gets mypy 1, as mypy 2 needs a package without a wheel there.
"""

from __future__ import annotations

import sys
import sysconfig
import tomllib
from itertools import chain
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]
extras = chain.from_iterable(project["optional-dependencies"].values())
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
unavailable = ("duckdb",) if free else ()
for requirement in (*project["dependencies"], *extras):
    if free and sys.version_info < (3, 14) and requirement.startswith("mypy"):
        print("mypy>=1.18,<2")
    elif not requirement.startswith(unavailable):
        print(requirement)
