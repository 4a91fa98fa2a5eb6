"""Tables fit the terminal: optional columns are left out by rank, and named."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from rich.table import Table

from pulsar_ml.campaign.store.merge import Group, SuiteTotals, Summary
from pulsar_ml.campaign.store.summary import print_summary
from pulsar_ml.terminal.tables import print_table


def table() -> Table:
    grid = Table()
    for name in ("first", "second", "third"):
        grid.add_column(name)
    grid.add_row("a" * 12, "b" * 12, "c" * 12)
    return grid


@pytest.mark.parametrize(
    ("width", "shown"),
    [(80, "abc"), (40, "ac"), (24, "a")],
)
def test_columns_go_by_rank(width: int, shown: str) -> None:
    file = StringIO()
    print_table(Console(file=file, width=width), table(), ("second", "third"))
    text = file.getvalue()
    assert [letter for letter in "abc" if letter * 12 in text] == list(shown)
    assert "…" not in text
    assert ("Left out at" in text) == (len(shown) < 3)


@pytest.mark.parametrize("executions", [0, 123_456_789])
def test_the_summary_of_a_sweep_fits_80_columns(executions: int) -> None:
    totals = SuiteTotals(
        trials=100_000, violation=12, nothing_exercised=3, operations=10**9, executions=executions,
        overlaps=10**8, judged=10**6, unknown=77, busy_us=10**9,
    )  # fmt: skip
    message = "entry (1, 7) was handed out with 3 references, and its count is 2"
    group = Group("0123456789ab", "inflight_limiter", "I13", 12, 10**6, message, "running", "{}")
    file = StringIO()
    summary = Summary({"inflight_limiter": totals, "stamped_lock": totals}, {"x": group})
    print_summary(Console(file=file, width=80), summary, lambda group: "pulsar-ml replay FILE")
    text = file.getvalue()
    assert "…" not in text, text
    assert max(map(len, text.splitlines())) <= 120, "only the line about columns may be longer"
    for word in ("inflight_limiter", "100,000", "I13", "handed out"):
        assert word in text
