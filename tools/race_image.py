"""Draws the race of the tutorial's ticket lock as docs/images/race.svg, which the README shows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # started as a file, Python would look for imports beside this file first

from pulsar_ml.harness.building.build import build_extension  # noqa: E402
from pulsar_ml.harness.building.load import load_checked  # noqa: E402
from pulsar_ml.harness.search.interleave import interleave  # noqa: E402
from pulsar_ml.harness.search.timeline import timeline  # noqa: E402
from pulsar_ml.report.image import svg  # noqa: E402

TUTORIAL = ROOT / "docs" / "testing-your-own.md"
IMAGE = ROOT / "docs" / "images" / "race.svg"
LABEL = "Two threads take one ticket, and both write the counter that the lock should protect"


def source(name: str) -> str:
    """Return the file of that name as the tutorial has it at first."""
    return TUTORIAL.read_text().split(f"```cython {name}\n")[1].split("```\n")[0]


def draw(folder: Path) -> str:
    """Build the tutorial's lock in ``folder``, find its race and draw it."""
    path = folder / "ticket.pyx"
    path.write_text(source(path.name))
    module = load_checked(build_extension(path, into=folder / "build", checked=True))
    subject = module.SUBJECTS["ticket"]
    failure = interleave(subject, executions=2000, programs=4, operations=2).failure
    if failure is None:
        raise SystemExit("the tutorial's lock did not fail")
    trace = failure.replay(subject).trace
    return svg(timeline(failure, trace, subject=subject), LABEL)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        IMAGE.parent.mkdir(exist_ok=True)
        IMAGE.write_text(draw(Path(folder)))
    print(f"wrote {IMAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
