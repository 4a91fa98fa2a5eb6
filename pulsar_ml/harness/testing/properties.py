"""Properties of a test in pytest's reports, and the files that hold its failures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pulsar_ml.harness.search.failure import Failure

FAILURE = "pulsar_ml.failure"  # a failure in its short form
RECORD = "pulsar_ml.record"
EXPLORED = "pulsar_ml.explored"  # one line about the exploration; -v shows those of passed tests

REPLAYED = pytest.StashKey["Failure | None"]()


def keep_record(failure: Failure, config: pytest.Config) -> Path:
    """Write the record of a failure; the path is relative to the current folder where it can be."""
    from pulsar_ml.harness.testing.records import keep_failure

    path = keep_failure(failure, config.rootpath)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
