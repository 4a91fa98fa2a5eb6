"""Exit codes of every command: their names, numbers and sentences."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """The number with which a command ends. ``sentence`` explains it in the command's help."""

    sentence: str

    def __new__(cls, number: int, sentence: str) -> ExitCode:
        code = int.__new__(cls, number)
        code._value_ = number
        code.sentence = sentence
        return code

    CLEAN = 0, "done; nothing wrong was found"
    VIOLATION = 1, "a violation was found"
    USAGE = 2, "an option, an argument or an input file is wrong; the message says how"
    NOTHING_EXERCISED = 3, "nothing was exercised, so the result proves nothing"
    FAILED = 4, "the command failed; the message says why"
    UNKNOWN = 5, "no verdict: a limit was reached first"
    INTERRUPTED = (
        130,
        "interrupted by Ctrl-C (SIGTERM: 143, SIGHUP: 129); finished results are kept",
    )


CLEAN = ExitCode.CLEAN
VIOLATION = ExitCode.VIOLATION
USAGE = ExitCode.USAGE
NOTHING_EXERCISED = ExitCode.NOTHING_EXERCISED
FAILED = ExitCode.FAILED
UNKNOWN = ExitCode.UNKNOWN
INTERRUPTED = ExitCode.INTERRUPTED

BASIC = (CLEAN, USAGE, FAILED, INTERRUPTED)  # of commands that only do something
SEARCH = (CLEAN, VIOLATION, USAGE, NOTHING_EXERCISED, FAILED, INTERRUPTED)  # that look for bugs


def worst(codes: Iterable[int]) -> ExitCode:
    """The one exit code of several suites: an incomplete run first, then a violation."""
    found = set(codes)
    order = (INTERRUPTED, FAILED, VIOLATION, NOTHING_EXERCISED)
    return next((code for code in order if code in found), CLEAN)


def of_run(status: str, verdict: str) -> ExitCode:
    """The exit code of a run; an incomplete run is never reported clean."""
    by_status = {"interrupted": INTERRUPTED, "failed": FAILED}
    by_verdict = {"violation": VIOLATION, "nothing_exercised": NOTHING_EXERCISED, "clean": CLEAN}
    return by_status[status] if status in by_status else by_verdict[verdict]
