"""Fixtures shared by all folders."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from pulsar_ml.campaign.trial import load_native
from tests.harness.build_toys import toys_path


@pytest.fixture(scope="session")
def toys_so() -> Path:
    """The shared object of the toy subjects, compiled on first use."""
    return toys_path()


@pytest.fixture(scope="session")
def toys(toys_so: Path) -> ModuleType:
    """The module of the toy subjects."""
    return load_native(str(toys_so))
