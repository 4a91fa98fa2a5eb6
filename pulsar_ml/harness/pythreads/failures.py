"""Turns exceptions of threads into failures, and places of Python code into text."""

from __future__ import annotations

import functools
import linecache
import re
import sys
import traceback
from pathlib import Path
from types import CodeType

from pulsar_ml.harness.pythreads import _fibers
from pulsar_ml.harness.pythreads.causes import cause_of
from pulsar_ml.harness.pythreads.native_modules import NativeModules
from pulsar_ml.harness.pythreads.points import PACKAGE
from pulsar_ml.harness.search import symbols

LEFT_LOCKED = 0  # what a remark about a lock says, as in native/replaced/held.c
EXCEPTION, ASSERTION = 0, 1  # kinds of a failure, as in fibers.h
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # differs each time
LONGEST = 200  # characters of a message
SWEEPS: list[str] = []  # the modules of tests that this process sweeps


class ExceptionTexts:
    """The exception of the last execution that failed by one, as text."""

    def __init__(self) -> None:
        self.text = ""
        self.native = NativeModules()
        self.locks: list[str] = []  # remarks
        self.causes: list[str] = []  # of executions that differ when they are repeated

    def note_native(self, function: object, place: int) -> None:
        """Take note of a native callable, or of a set whose order the test reads."""
        if cause := cause_of(function):
            self.causes.append(f"{cause} at {describe(place).rpartition(' ')[2]}")
        if not isinstance(function, (set, frozenset)):
            self.native.note(function)

    def note_lock(self, what: int, holder: int, acquired: int, thread: int, released: int) -> str:
        """Return, and keep, the remark about a lock, with the places of its calls."""
        place = describe(acquired).rpartition(" ")[2]
        if what == LEFT_LOCKED:
            text = f"the lock that thread {holder} acquired at {place} is locked when the test ends"
        else:
            text = (
                f"thread {thread} releases at {describe(released).rpartition(' ')[2]} the lock that "
                f"thread {holder} acquired at {place}"
            )
        self.locks.append(text)
        return text

    def take(self, error: BaseException) -> tuple[int, str, str, list[int]]:
        """Return kind, rule, message and places, from the outside in, of an exception."""
        places = []
        last = None
        walked = error.__traceback__
        while walked is not None:
            code = walked.tb_frame.f_code
            if place := _fibers.place_number(code, walked.tb_lasti // 2):
                places.append(place)
                last = code.co_filename, walked.tb_lineno
            walked = walked.tb_next
        if _fibers.recording():
            self.text = traceback_of(error)
        message = ADDRESS.sub("", " ".join(str(error).split()))
        if isinstance(error, AssertionError):
            if not message and last is not None:
                message = linecache.getline(*last).strip()
            return ASSERTION, "", (message or "an assertion failed")[:LONGEST], places
        name = type(error).__name__
        return EXCEPTION, "exception", f"{name}: {message}"[:LONGEST].rstrip(": "), places


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an exception, without the frames that called the test."""
    walked = error.__traceback__
    while walked is not None and walked.tb_frame.f_code.co_filename.startswith(PACKAGE):
        walked = walked.tb_next
    return "".join(traceback.format_exception(error.with_traceback(walked))).rstrip()


@functools.cache
def lines_of(code: CodeType) -> dict[int, int]:
    """The line of each instruction's offset."""
    return {
        offset: line
        for start, end, line in code.co_lines()
        if line is not None
        for offset in range(start, end, 2)
    }


def place_of(place: int) -> tuple[str, str, int] | None:
    """Return function, file and line; None for an address of native code."""
    found = _fibers.place_parts(place)
    if found is None:
        return None
    code, instruction = found
    line = lines_of(code).get(2 * instruction, code.co_firstlineno)
    return code.co_qualname, code.co_filename, line


def describe(place: int) -> str:
    """Return ``function folder/file:line``; "" for an address of native code."""
    found = place_of(place)
    if found is None:
        return ""
    function, file, line = found
    # A place is one word behind the function's name.
    return f"{function.replace('.<locals>.', '.')} {short_name(file)}:{line}"


def short_name(file: str) -> str:
    """Return a file with its folder; in a sweep, as seen from the import path of any machine."""
    if SWEEPS:
        below = [file[len(root) + 1 :] for root in sys.path if root and file.startswith(f"{root}/")]
        return min(below, key=len, default=Path(file).name)
    return "/".join(Path(file).parts[-2:])


def source_line(place: int) -> str:
    """Return the source line of a place."""
    found = place_of(place)
    return "" if found is None else linecache.getline(found[1], found[2]).strip()


def stacks_text() -> str:
    """Describe where each thread stood that had not ended when the recorded execution failed."""
    lines = []
    for number, places in sorted(_fibers.stacks().items()):
        lines.append(f"thread {number}:")
        for place in reversed(places):
            lines.append(f"  {describe(place)}")
            if source := source_line(place):
                lines.append(f"    {source}")
    return "\n".join(lines)


class PythonPlaces:
    """Places and variables of Python code, for reports; see symbols.INTERPRETED."""

    shadow = 8 * (1 << 16)  # distance of the bytes that the detector of races looks at

    def describe(self, pc: int) -> str:
        return describe(pc)

    def source_line(self, pc: int) -> str:
        return source_line(pc)

    def source_of(self, pc: int) -> tuple[str, int] | None:
        found = place_of(pc)
        return None if found is None else found[1:]

    def name_of(self, address: int) -> str:
        names, _ = _fibers.recorded_names()
        return names.get(address) or names.get(address - self.shadow, "")

    def value_of(self, number: int) -> str:
        _, values = _fibers.recorded_names()
        return values[number - 1] if 0 < number <= len(values) else ""


def register() -> None:
    """Let reports of failures show Python code."""
    if not any(isinstance(each, PythonPlaces) for each in symbols.INTERPRETED):
        symbols.INTERPRETED.append(PythonPlaces())
