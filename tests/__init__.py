"""The tests, a folder for each package; ``ROOT`` is the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
