"""Reads ``pyproject.toml``, the settings of the project under test."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pulsar_ml.errors import BadRecordError
from pulsar_ml.input_files import bounded_text, one_line

NAME = "pyproject.toml"
MOST_BYTES = 4 << 20  # length of the file


def read_pyproject(path: Path) -> dict[str, Any]:
    """Return the content of the file. Raises BadRecordError when it is no TOML."""
    try:
        return tomllib.loads(bounded_text(path, "the project's settings", most=MOST_BYTES))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRecordError(f"{path} is no TOML: {one_line(error)}") from None
