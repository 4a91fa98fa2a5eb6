from __future__ import annotations

import re

from tests import ROOT

PAGE = ROOT / "docs" / "managed-ledger.md"


def test_the_example_of_the_page_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example.count("assert") > 10
    exec(compile(example, str(PAGE), "exec"), {})
