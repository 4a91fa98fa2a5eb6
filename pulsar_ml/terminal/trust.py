"""Code that a file names is loaded only when it is of this installation, or trusted by an option.

A record or a run says which module, suites and environment it used. Loading them runs them, so that
a file from elsewhere could run anything. Names on the command line are the user's own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pulsar_ml.errors import UsageError

PACKAGE = Path(__file__).resolve().parents[1]
OPTION = "--trust"


def is_installed(module: str) -> bool:
    """Return True for a module of this package, by its name or as a shared object inside of it."""
    if module.endswith(".so") or "/" in module:
        return Path(os.path.realpath(module)).is_relative_to(PACKAGE)
    return module in ("", PACKAGE.name) or module.startswith(f"{PACKAGE.name}.")


def trust_words(*modules: str | None) -> tuple[str, ...]:
    """The option that a command line needs for a record or run that names these modules."""
    return () if all(is_installed(module or "") for module in modules) else (OPTION,)


def check_built(record: object, recipe: str, *, trust: bool) -> None:
    """Raise UsageError for a record whose subject is built from a file, unless it is trusted."""
    if recipe and not trust:
        raise UsageError(
            f"{record} names a source file and flags of the compiler, which would be built and run "
            f"here; if the record is yours, add {OPTION}"
        )


def check_trusted(source: object, named: Mapping[str, object], *, trust: bool) -> None:
    """Raise UsageError unless all code that a file names is of this installation, or trusted.

    ``source`` is the file; ``named`` maps options of the command line to what the file says.
    """
    if trust:
        return
    for option, value in named.items():
        modules = option in ("--module", "--suites")
        if not value or (modules and is_installed(str(value))):
            continue
        text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        raise UsageError(
            f"{source} names {option} {text!r:.200}, which is not of this installation and would "
            f"run here; if the file is yours, add {OPTION}, or else give {option} yourself"
        )
