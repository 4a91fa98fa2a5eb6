"""Every setting changes a behaviour, and the page has the same table."""

from __future__ import annotations

import re

import pytest

from pulsar_ml.config import SETTINGS, read_mapping
from tests import ROOT
from tests.config.effects import EFFECTS, acknowledgements, cache, delivery, ledgers

MODULES = (acknowledgements, cache, delivery, ledgers)  # importing them fills EFFECTS
PAGE = ROOT / "docs" / "configuration.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+) \| (.+) \|$", re.MULTILINE)


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS])
def test_a_setting_changes_a_behaviour(key: str) -> None:
    assert key in EFFECTS, f"{key}: add an effect to tests/config/effects"
    effect = EFFECTS[key]
    seen = tuple(
        effect.observe(read_mapping({**effect.others, key: value}).config)
        for value in effect.values
    )
    assert seen == effect.seen
    assert seen[0] != seen[1]


def test_the_page_has_a_row_for_each_setting() -> None:
    rows = {key: (behaviour, seen) for key, behaviour, seen in ROW.findall(PAGE.read_text())}
    assert rows == {
        setting.key: (
            EFFECTS[setting.key].behaviour,
            ", ".join(
                f"{setting.format(value)}: {shown}"
                for value, shown in zip(
                    EFFECTS[setting.key].values, EFFECTS[setting.key].seen, strict=True
                )
            ),
        )
        for setting in SETTINGS
    }
