"""Progress of a sweep as JSON lines for other programs."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any, TextIO

from pulsar_ml.campaign.run.progress import Progress

JSON_SECONDS = 1.0  # between two lines of one wave
JSON_VERSION = 2  # changes when a field does


def fields(progress: Progress) -> dict[str, Any]:
    """A moment of a campaign as fields of an event."""
    left = progress.seconds_left
    return {
        "round": progress.round,
        "wave": progress.wave,
        "seconds": round(progress.elapsed, 3),
        "trials": progress.trials,
        "earlier": progress.earlier,
        "planned": progress.total,
        "trials_per_second": round(progress.rate, 3),
        "executions": progress.executions,
        "executions_per_second": round(progress.execution_rate, 3),
        "violations": progress.violations,
        "signatures": progress.signatures,
        "classes": progress.classes,
        "inside": None if progress.inside is None else round(progress.inside, 4),
        "seconds_left": None if left is None else round(left, 1),
    }


class JsonLines:
    """Writes one event a line: the first of each wave, and others at most once a second."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._last: Progress | None = None
        self._next = 0.0

    def event(self, name: str, **content: object) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._file.write(
            json.dumps({"version": JSON_VERSION, "event": name, "at": at, **content}) + "\n"
        )
        self._file.flush()

    def show(self, progress: Progress) -> None:
        if (
            self._last is not None
            and self._last.wave == progress.wave
            and time.monotonic() < self._next
        ):
            self._last = progress
            return
        self._next = time.monotonic() + JSON_SECONDS
        self._last = progress
        self.event("progress", **fields(progress))

    def end(self, **content: object) -> None:
        """Writes the last event, with the last numbers."""
        last = {} if self._last is None else fields(self._last)
        self.event("end", **last, **content)
