"""Files of reports: written as a whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pulsar_ml.input_files import refused


def write(path: Path, text: str) -> None:
    """Replaces the file at ``path`` by the whole text, or leaves it as it is."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise refused(error, path, "write") from None
