"""``python -m tests.memory_model.arm.page``: the tables "On aarch64" of docs/memory-ordering.md."""

from __future__ import annotations

import re

from tests.memory_model.arm.shapes import SHAPES, Shape, Weakened, weakened
from tests.memory_model.litmus import Litmus, Operation


def code(call: Operation) -> str:
    return str(call).replace(" (relaxed)", "")


def text_of(program: Litmus) -> str:
    """Return a program as one line of code for each thread."""
    return " beside ".join(f"`{'; '.join(map(code, calls))}`" for calls in program.threads)


def wrong_of(shape: Shape) -> str:
    """Return what the reads of the threads must not be, each thread's in parentheses."""
    return " or ".join(
        " ".join(f"({', '.join(map(str, row))})" for row in reads if row) for reads in shape.wrong
    )


def programs() -> list[str]:
    """Return the table of shapes: the program, what must not be read, and the pairs by reader."""
    rows = ["| shape | program | must not be read | who acquires |", "| --- | --- | --- | --- |"]
    for shape in SHAPES:
        readers = dict.fromkeys(pair.split(" | ")[1] for pair in shape.pairs)
        rows.append(
            f"| {shape.name} | {text_of(shape.program)} | {wrong_of(shape)} | "
            f"{', '.join(readers)} |"
        )
    return rows


def order_of(row: Weakened) -> str:
    """Return the call whose order is weakened, and what else keeps Arm from showing it."""
    text = f"`{code(row.call)}`"
    if row.arm and row.shape.depends and not row.dependent:
        of = {"addr": "address", "ctrl": "branch"}[row.shape.depends[2]]
        text += f", but for the {of}"
    return text


def orders() -> list[str]:
    """Return the table of the orders without which a model allows the wrong reads."""
    columns = {
        "C11 and Arm": (True, True),
        "Arm alone": (False, True),
        "C11 alone": (True, False),
        "neither": (False, False),
    }
    rows = [f"| shape | {' | '.join(columns)} |", f"|{' --- |' * (1 + len(columns))}"]
    for shape in SHAPES:
        weaker = list(weakened(shape))
        cells = (
            "; ".join(
                dict.fromkeys(order_of(row) for row in weaker if (row.c11, bool(row.arm)) == shown)
            )
            for shown in columns.values()
        )
        rows.append(f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in (shape.name, *cells))}|")
    return rows


def rows_of_pairs(page: str) -> list[str]:
    """Return the pairs of the page's first table: each release and who reads it."""
    lines = [line for line in page.partition("\n## ")[0].splitlines() if line.startswith("| ")]
    cells = [re.split(r" \| ", line.strip("| ")) for line in lines]
    return [f"{row[1]} | {row[2]}" for row in cells[2:]]


def main() -> None:
    print("\n".join((*programs(), "", *orders())))


if __name__ == "__main__":
    main()
