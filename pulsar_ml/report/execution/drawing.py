"""An interleaving as data for the page's script: rows, blocks, arrows, source and curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.local.inevitability import Share, turning_point
from pulsar_ml.harness.search.timeline import Step, Timeline

AROUND = 3  # lines of source before and behind a line that a step names
MOST_LINES = 400  # of source beside one drawing
MOST_WIDTH = 400  # characters of a line of source

Excerpts = dict[str, dict[int, str]]  # by file: the lines beside a drawing, by number


def excerpts_of(drawn: Timeline) -> Excerpts:
    """Return the lines around those that the steps name, of each file that can be read."""
    named: dict[str, set[int]] = {}
    for step in drawn.steps:
        if step.file:
            named.setdefault(step.file, set()).add(step.line)
    found: Excerpts = {}
    room = MOST_LINES
    for file, lines in named.items():
        try:
            text = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError):
            continue
        around = {line + by for line in lines for by in range(-AROUND, AROUND + 1)}
        wanted = [line for line in sorted(around) if 1 <= line <= len(text)][: max(room, 0)]
        room -= len(wanted)
        if wanted:
            found[file] = {line: text[line - 1][:MOST_WIDTH] for line in wanted}
    return found


def drawing_data(
    drawn: Timeline, excerpts: Excerpts, curve: Sequence[Share] | None
) -> dict[str, Any]:
    """Return the data of one drawing. Rows, files and blocks are named by their numbers."""
    files = {file: number for number, file in enumerate(excerpts)}
    blocks = list(blocks_of(drawn.steps))
    block_of = {row: number for number, rows in enumerate(blocks) for row in rows}
    return {
        "lanes": drawn.lanes,
        "steps": [
            [
                step.lane, step.kind, step.text, step.place, step.mark, block_of.get(row, -1),
                files.get(step.file, -1), step.line, step.number,
            ]
            for row, step in enumerate(drawn.steps)
        ],
        "blocks": [[drawn.steps[rows[0]].block, rows[0], rows[-1]] for rows in blocks],
        "arrows": [[arrow.start, arrow.end, arrow.kind] for arrow in drawn.arrows],
        "missing": drawn.missing,
        "files": [
            [Path(file).name, [[number, text] for number, text in lines.items()]]
            for file, lines in excerpts.items()
        ],
        **curve_data(drawn, curve or ()),
    }  # fmt: skip


def blocks_of(steps: Sequence[Step]) -> Iterable[list[int]]:
    """Yield the rows of each block: steps of one operation that follow each other in their lane."""
    last: dict[int, list[int]] = {}
    for row, step in enumerate(steps):
        rows = last.get(step.lane)
        first = steps[rows[0]] if rows else None
        if rows and first and step.block and (first.call, first.block) == (step.call, step.block):
            rows.append(row)
            continue
        if rows:
            yield rows
            del last[step.lane]
        if step.block:
            last[step.lane] = [row]
    yield from last.values()


def curve_data(drawn: Timeline, curve: Sequence[Share]) -> dict[str, Any]:
    """Return the shares of continuations that fail, each with the row before which it was taken."""
    turn = turning_point(curve)
    points = []
    for share in curve:
        row = next(
            (row for row, step in enumerate(drawn.steps) if step.number >= share.event),
            len(drawn.steps),
        )
        points.append([row, share.event, share.thread, share.place, share.failed, share.judged])
    return {"curve": points, "turn": -1 if turn is None else list(curve).index(turn)}
