"""One interleaving as an SVG file that needs nothing else, for a README or a bug tracker."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from pulsar_ml.harness.search.timeline import BEFORE, READS, Timeline
from pulsar_ml.report.html import environment, style_of

STYLES = ("colours", "timeline")
ROW, TOP, LEFT = 22, 44, 18  # pixels: the height of a row and the margins of a drawing
CHARACTER = 7.3  # pixels: the width of a character in a drawing
MOST_CHARACTERS = 84  # the most characters of a step that widen its lane
KINDS = {BEFORE: "before", READS: "reads"}  # arrows by their class of style
BACKGROUND = "svg { background: var(--bg); }\n"


def svg(drawn: Timeline, label: str) -> str:
    """Draw a timeline as the report does; ``label`` is the text for readers who do not see it."""
    found = {"signature": "0", "label": label, **drawing(drawn)}
    style = Markup(style_of(*STYLES) + BACKGROUND)
    return environment().get_template("timeline.svg").render(drawing={**found, "style": style})


def drawing(drawn: Timeline) -> dict[str, Any]:
    """The coordinates of an interleaving's lanes, steps and arrows, in pixels."""
    longest = [12] * drawn.lanes
    for step in drawn.steps:
        longest[step.lane] = max(
            longest[step.lane], len(step.text) + 2 + len(step.place) + 2 * bool(step.mark)
        )
    longest = [min(characters, MOST_CHARACTERS) for characters in longest]
    lefts = [LEFT]
    for characters in longest:
        lefts.append(round(lefts[-1] + characters * CHARACTER + 44))
    boxes = [round(characters * CHARACTER) + 30 for characters in longest]
    y = [TOP + ROW * row for row in range(len(drawn.steps))]
    height = TOP + ROW * len(drawn.steps) + 4
    return {
        "width": lefts[-1],
        "height": height,
        "lanes": [{"number": lane, "x": x} for lane, x in enumerate(lefts[:-1])],
        "steps": [
            {"x": lefts[step.lane], "y": y[row], "step": step, "width": boxes[step.lane]}
            for row, step in enumerate(drawn.steps)
        ],
        "arrows": [
            {
                "kind": KINDS[arrow.kind],
                "path": curve_between(
                    lefts[drawn.steps[arrow.start].lane], y[arrow.start],
                    lefts[drawn.steps[arrow.end].lane], y[arrow.end],
                ),
            }
            for arrow in drawn.arrows
            if arrow.kind in KINDS
        ],
    }  # fmt: skip


def curve_between(x1: int, y1: int, x2: int, y2: int) -> str:
    """The SVG path of an arrow that leaves downwards and arrives from above, beside the texts."""
    if x1 == x2:
        return f"M{x1 - 5},{y1} C{x1 - 16},{y1} {x1 - 16},{y2} {x1 - 6},{y2}"
    side = 7 if x2 < x1 else -7
    return f"M{x1},{y1 + 5} C{x1},{y1 + 26} {x2 + 5 * side},{y2 - 26} {x2 + side},{y2 - 3}"
