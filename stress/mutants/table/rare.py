"""Mutants that programs written for them find with every seed, and generated programs do not."""

from __future__ import annotations

from collections.abc import Mapping

RARE: Mapping[str, str] = {
    "H07": "A holder releases too often. No suite makes that mistake: what holders see then is "
    "theirs.",
    "L09": "As H07.",
}
