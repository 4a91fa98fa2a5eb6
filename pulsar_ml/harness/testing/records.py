"""Files that hold failures of tests: equal failures share one file."""

from __future__ import annotations

from pathlib import Path

from pulsar_ml.errors import naming
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.testing.sarif import fingerprint

FOLDER = Path(".pulsar_ml") / "failures"


def keep_failure(failure: Failure, root: Path) -> Path:
    """Write the record of ``failure`` below ``root`` and return its path."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{failure.subject}-{fingerprint(failure)[:12]}.json"
    with naming(path):
        path.write_text(failure.to_json() + "\n")
    return path
