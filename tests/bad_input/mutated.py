"""Reads many mutated inputs with every parser; each case is decided by its number alone.

A case takes a good file of one parser, mutates it, and reads it. The parser has to read it, or to
refuse it in one sentence, within bounds of time and memory, and may change nothing.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pulsar_ml.errors import PulsarMlError
from tests.bad_input.damage import HOSTILE, digest, places, put
from tests.bad_input.parsers import PARSERS, Parser, run_of

SECONDS = 60  # for one case, which takes milliseconds on a quiet machine
QUICK_TURNS = 8  # of a parser that reads one file, for each turn of one that reads a run
MOST_MEMORY = 1 << 30  # resident, in bytes, beyond what the process had before the case
TOKENS = (
    b"\0", b"\x1b[2J", b"\xff\xfe", b"[" * 3_000, b"{\"a\":" * 3_000, b"-1", b"1e999", b"9" * 500,
    b"NaN", b"null", b"../../x", b"/etc/passwd", b"\\ud800", b"\"", b"'", b"\n", b"\r\n", b",,,,",
    b"# ", b"\x7f", b"\xc2\x9b31m", b"2147483648", b"18446744073709551616", b"__import__('os')",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Good:
    """A good file of a parser, in a directory of its own with the files that belong to it."""

    parser: Parser
    directory: Path
    path: Path
    content: bytes
    before: Mapping[str, str]


def good_files(folder: Path, parsers: Mapping[str, Parser] = PARSERS) -> dict[str, Good]:
    """Make a good file for each parser below ``folder``."""
    found = {}
    for number, (name, parser) in enumerate(parsers.items()):
        place = folder / str(number)
        place.mkdir()
        path = parser.make(place)
        directory = run_of(path).parent if "run" in path.parts else place
        found[name] = Good(parser, directory, path, path.read_bytes(), digest(directory))
    return found


def mutated(content: bytes, draw: random.Random, *, text: bool) -> bytes:
    """Return the content with one to three mutations."""
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if text and draw.random() < 0.4 and (changed := other_values(content, draw)) is not None:
            content = changed
        else:
            content = draw.choice(MUTATIONS)(content, draw)
    return content


def cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randint(0, len(content))]


def flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        if changed:
            changed[draw.randrange(len(changed))] ^= draw.randint(1, 255)
    return bytes(changed)


def lose(content: bytes, draw: random.Random) -> bytes:
    at, end = sorted(draw.randint(0, len(content)) for _ in range(2))
    return content[:at] + content[end:]


def double(content: bytes, draw: random.Random) -> bytes:
    at, end = sorted(draw.randint(0, len(content)) for _ in range(2))
    return content[:end] + content[at:]


def garbage(content: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(content))
    return content[:at] + draw.randbytes(draw.randint(1, 40)) + content[at:]


def token(content: bytes, draw: random.Random) -> bytes:
    at, end = sorted(draw.randint(0, len(content)) for _ in range(2))
    end = end if draw.random() < 0.2 else min(at + draw.randint(0, 8), len(content))
    return content[:at] + draw.choice(TOKENS) + content[end:]


def number(content: bytes, draw: random.Random) -> bytes:
    """Replace a little-endian word by an extreme one, as in a length of a binary file."""
    width = draw.choice((1, 2, 4, 8))
    if len(content) < width:
        return content
    at = draw.randint(0, len(content) - width)
    word = draw.choice((0, 1, 2 ** (8 * width - 1), 2 ** (8 * width) - 1, 2 ** (8 * width - 1) - 1))
    return content[:at] + word.to_bytes(width, "little") + content[at + width :]


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    cut, flip, flip, lose, double, garbage, token, token, number,
)  # fmt: skip


def other_values(content: bytes, draw: random.Random) -> bytes | None:
    """Replace a value of a JSON object, or of a line; None when the content is no JSON."""
    lines = content.splitlines()
    for part in (content, draw.choice(lines) if lines else b""):
        try:
            found = json.loads(part)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict | list):
            changed = put(found, draw.choice(places(found)), draw.choice(HOSTILE))
            return content.replace(part, json.dumps(changed).encode(), 1)
    return None


def turns(good: Mapping[str, Good]) -> list[str]:
    """The names of the parsers in the order of cases; a file outside a run gets more turns."""
    return [
        name
        for turn in range(QUICK_TURNS)
        for name, one in good.items()
        if turn == 0 or (one.directory.name != "run" and "run" not in one.path.parts)
    ]


def case(good: Mapping[str, Good], number: int) -> tuple[str, bytes]:
    """Return the parser and the input of a case."""
    order = turns(good)
    name = order[number % len(order)]
    one = good[name]
    return name, mutated(one.content, random.Random(number), text=not one.parser.binary)


def problem(one: Good, content: bytes) -> str | None:
    """Return how a parser failed on an input, or None; the good file is back afterwards."""
    one.path.write_bytes(content)
    before = {**one.before, one.path.relative_to(one.directory).as_posix(): None}
    try:
        found = refusal(one, content)
        after: dict[str, Any] = digest(one.directory)
        if found is None and set(after) != set(before) and not one.parser.writes:
            found = f"files changed: {sorted(set(after) ^ set(before))[:5]}"
        changed = [name for name, hashed in before.items() if hashed and hashed != after.get(name)]
        if found is None and changed and not one.parser.writes:
            found = f"files changed: {changed[:5]}"
        if found is None and not one.parser.writes and one.path.read_bytes() != content:
            found = "the input changed"
    finally:
        for name in set(digest(one.directory)) - set(one.before):
            path = one.directory / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        one.path.write_bytes(one.content)
    return found


def refusal(one: Good, content: bytes) -> str | None:
    """Read the input; return what is wrong with how the parser ended."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    signal.alarm(SECONDS)
    try:
        one.parser.read(one.path)
    except PulsarMlError as error:
        text = str(error)
        lines = text.splitlines() or [""]
        if not text.strip() or (len(lines) > 1 and not one.parser.lines):
            return f"no single sentence: {text[:200]!r}"
        if max(map(len, lines)) >= 1_000:
            return f"a sentence of {max(map(len, lines))} characters: {text[:200]!r}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        signal.alarm(0)
    if resident("VmHWM") - before > MOST_MEMORY:
        return f"more than {MOST_MEMORY >> 20} MiB of memory"
    return None


def resident(field: str) -> int:
    """Return the bytes of this process that are resident (VmRSS), or their peak (VmHWM)."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, field
    return int(found[1]) << 10


class LateError(Exception):
    """A parser took too long."""


@contextmanager
def patience() -> Iterator[None]:
    """Make a parser that takes too long fail."""

    def late(*_: object) -> None:
        raise LateError(f"more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


def problems(numbers: range, parsers: Mapping[str, Parser] = PARSERS) -> Iterator[tuple[int, str]]:
    """Run cases; yield the number of each that failed, with the reason."""
    with tempfile.TemporaryDirectory(prefix="mutated-") as folder, patience():
        good = good_files(Path(folder), parsers)
        for number in numbers:
            name, content = case(good, number)
            found = problem(good[name], content)
            if found is not None:
                yield number, f"{name}: {found}"
