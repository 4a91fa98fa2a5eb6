"""Writing files so that an error names the file: a full disk does not say which it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give the errors of the system that lack a file's name this one."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file; an error names it."""
    with naming(path):
        path.write_text(text)
