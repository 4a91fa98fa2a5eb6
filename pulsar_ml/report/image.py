"""One interleaving as an SVG file that needs nothing else, for a README or a bug tracker."""

from __future__ import annotations

from markupsafe import Markup

from pulsar_ml.harness.search.timeline import Timeline
from pulsar_ml.report.page import STYLES, drawing, environment, style_of

BACKGROUND = "svg { background: var(--bg); }\n"


def svg(drawn: Timeline, label: str) -> str:
    """Draw a timeline as the report does; ``label`` is the text for readers who do not see it."""
    found = {"signature": "0", "label": label, **drawing(drawn)}
    style = Markup(style_of(*STYLES) + BACKGROUND)
    return environment().get_template("timeline.svg").render(drawing={**found, "style": style})
