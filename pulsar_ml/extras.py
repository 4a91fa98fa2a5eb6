"""Optional packages: a missing one is reported with the ``pip install`` line that brings it."""

from __future__ import annotations

from importlib.util import find_spec

from pulsar_ml.errors import PulsarMlError


class MissingExtraError(PulsarMlError, ImportError):
    """A package of an optional feature is not installed."""


def require(extra: str, *modules: str, purpose: str) -> None:
    """Raises ``MissingExtraError`` unless all ``modules`` of an extra can be imported."""
    for name in modules:
        try:
            found = find_spec(name)
        except (ImportError, ValueError):
            found = None
        if found is None:
            raise MissingExtraError(
                f"{purpose} needs the package {name}: pip install 'pulsar_ml[{extra}]'"
            )
