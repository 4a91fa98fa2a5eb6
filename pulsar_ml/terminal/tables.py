"""Tables that fit the terminal: columns that do not fit are left out by rank and named below."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

NARROWEST = 12  # columns of text that folds


def print_table(console: Console, table: Table, optional: Sequence[str] = ()) -> None:
    """Prints a table without the ``optional`` columns (the first goes first) that do not fit."""
    dropped: list[str] = []
    for name in optional:
        if _width(console, table) <= console.width:
            break
        if any(column.header == name for column in table.columns):
            table = _without(table, name)
            dropped.append(name)
    console.print(table)
    if dropped:
        names = ", ".join(" ".join(name.split()) for name in dropped)
        console.print(
            f"Left out at {console.width} columns: {names}. --json has them.",
            highlight=False,
            soft_wrap=True,
        )


def _width(console: Console, table: Table) -> int:
    """The columns a table needs when its foldable columns keep their narrowest width."""
    total = 0
    for column in table.columns:
        widths = [
            Measurement.get(console, console.options, cell)
            for cell in (column.header, *column.cells)
        ]
        folds = column.overflow == "fold"
        need = max((one.minimum if folds else one.maximum for one in widths), default=0)
        total += max(min(need, NARROWEST), column.min_width or 0) if folds else need
    padding = 1 if table.collapse_padding else 2
    return total + padding * len(table.columns) + (len(table.columns) + 1 if table.box else 0)


def _without(table: Table, name: str) -> Table:
    """A copy of the table without the columns of one header."""
    result = Table(
        title=table.title,
        title_justify=table.title_justify,
        box=table.box,
        show_header=table.show_header,
        show_lines=table.show_lines,
        pad_edge=table.pad_edge,
        collapse_padding=table.collapse_padding,
    )
    records = [column for column in table.columns if column.header != name]
    for column in records:
        result.add_column(
            column.header,
            justify=column.justify,
            overflow=column.overflow,
            no_wrap=column.no_wrap,
            min_width=column.min_width,
        )
    for cells in zip(*(column.cells for column in records), strict=True):
        result.add_row(*cells)
    return result
