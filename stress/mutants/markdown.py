"""Rows of tables in Markdown."""

from __future__ import annotations


def row(*cells: object) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |\n"


def head(*cells: str) -> str:
    return row(*cells) + row(*("---" for _ in cells))
