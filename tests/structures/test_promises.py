"""The page of a structure says of its operations what its model checks."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

from pulsar_ml.operations import _native
from pulsar_ml.suites.registry import SUITES
from tests import ROOT

PAGES = ROOT / "docs" / "structures"
MODELLED = [suite for suite in SUITES.values() if suite.model]


def declared(page: str) -> tuple[set[str], dict[str, str]]:
    """The linearizable operations of a page, and its table of the weakly consistent ones."""
    section = page.split("## Linearization points", 1)[1].split("\n## ", 1)[0]
    listed = re.search(r"^Linearizable: (.*?)\.$", section, re.MULTILINE | re.DOTALL)
    assert listed is not None, "the page does not say which operations are linearizable"
    table = section.split("| operation | meaning of its answer |\n| --- | --- |\n", 1)
    rows = table[1].splitlines() if len(table) > 1 else []
    return set(re.findall(r"`(\w+)`", listed[1])), {
        match[1]: match[2]
        for row in rows
        if (match := re.fullmatch(r"\| `(\w+)` \| (.*) \|", row)) is not None
    }


@pytest.mark.parametrize("suite", MODELLED, ids=lambda suite: suite.name)
def test_the_page_says_what_the_model_declares(suite: Any) -> None:
    model = importlib.import_module(suite.model).Model
    linearizable, weak = declared((PAGES / f"{suite.subject}.md").read_text())
    assert weak == dict(model.weak)
    operations = _native.SUBJECTS[suite.subject].operations
    assert linearizable == {operation.name for operation in operations if operation.weight} - set(
        weak
    )
    assert set(weak) <= {operation.name for operation in operations}
    assert getattr(model, "spans", frozenset()) <= set(weak)


def test_a_page_that_says_less_is_noticed() -> None:
    page = (PAGES / "refcount.md").read_text()
    shorter = "\n".join(line for line in page.splitlines() if not line.startswith("| `retain` |"))
    assert declared(shorter)[1] != declared(page)[1]
