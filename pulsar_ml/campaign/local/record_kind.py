"""Tells a failure of the engine from a replay record, without loading the engine."""

from __future__ import annotations

import json
from pathlib import Path

from pulsar_ml.errors import PulsarMlError
from pulsar_ml.input_files import bounded_text

KIND = "pulsar_ml failure"  # the ``kind_of_record`` of the engine's failures


def is_failure(path: Path) -> bool:
    """True for a failure of the engine; False for anything else, also damage."""
    try:
        content = json.loads(bounded_text(path, "the record"))
    except (PulsarMlError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind_of_record") == KIND
