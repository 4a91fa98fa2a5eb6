"""The tests, a folder for each package; ``ROOT`` is the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# For pytest in a process of its own: the plugin of Hypothesis takes longer to import than pytest.
QUICK_PYTEST = {"PYTEST_ADDOPTS": "-p no:hypothesispytest"}
