"""Translates code addresses to function and file:line, by addr2line, when a report needs them."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from pulsar_ml.harness.engine import locate, match_places_by, symbol_at

LONG_NAME = 80  # characters of a function's name
FIRST_INTERPRETED = 1 << 60  # addresses from here on are no code of a module
ARGUMENTS = re.compile(r"<[^<>]+>")
Place = tuple[str, str, int]

# Where addresses stand for places of interpreted code: an object with describe(pc), which returns
# "" for others, source_line(pc), source_of(pc), name_of(address) and value_of(number).
INTERPRETED: list[Interpreted] = []
KNOWN: dict[tuple[str, int], Place | None] = {}
LIBRARY_PLACES: dict[tuple[str, int], Place] = {}  # of addresses in inlined code of a library
# File and function of each call at an address, inlined ones included, the innermost first.
CALLS: dict[tuple[str, int], tuple[str, ...]] = {}
OF_SHARED_POINTERS = re.compile(r"/shared_ptr_atomic\.h | std::_Sp_atomic<")
OF_ATOMICS = re.compile(r"sync/sync\.h$|/(atomic|(bits/)?atomic_\w+\.h)$")
OF_LIBRARIES = re.compile(
    r"^/usr/(local/)?(include|lib)/|/c\+\+/\d+/|/harness/(functions/glue|signatures/signatures)\.h$"
    r"|/pulsar_ml/check\.h$|/cython_utility$|/include/python3\.\d+t?/"
)
OF_INTERPRETER = re.compile(r"/((lib)?python3[^/]*|python)$")  # its program or library
OF_HARNESS = re.compile(r"^pml_(call|apply|do)(_\w+)?\b")  # what calls a test or an operation
THREAD_START = re.compile(
    r"^std::thread::_State_impl<.*std::tuple<(?P<called>.*)> > >::_M_run\(\)$"
)

REFERENCE = re.compile(r"^std::reference_wrapper<(.*?) *>$")


class Interpreted(Protocol):
    """Places and variables of interpreted code, which the engine knows by numbers."""

    def describe(self, pc: int) -> str: ...
    def source_line(self, pc: int) -> str: ...
    def source_of(self, pc: int) -> tuple[str, int] | None: ...
    def name_of(self, address: int) -> str: ...
    def value_of(self, number: int) -> str: ...


def interpreted_name(address: int) -> str:
    """Return the name of a variable of interpreted code; "" for other addresses."""
    return next(filter(None, (each.name_of(address) for each in INTERPRETED)), "")


def interpreted_value(number: int) -> str:
    """Return the text of a value of interpreted code."""
    return next(filter(None, (each.value_of(number) for each in INTERPRETED)), "?")


@functools.cache
def describe_pc(pc: int) -> str:
    """Return ``function file:line`` of the call before ``pc``.

    Without line numbers the function and its module, or the module and the offset in it.
    """
    if pc >= FIRST_INTERPRETED:
        return next(filter(None, (each.describe(pc) for each in INTERPRETED)), "?")
    found = locate(pc)
    if found is None:
        return "?"
    module, offset = found
    name = symbol_at(pc - 1)
    if name and innermost(module, offset - 1) is None:
        return f"{name} in {Path(module).name}"
    return place_in(module, offset - 1, offset)


def place_in(module: str, offset: int, shown: int | None = None) -> str:
    """Return ``function file:line`` at ``offset`` of a module, or module and offset if unknown."""
    place = innermost(module, offset)
    if place is None:
        return f"{Path(module).name}+{offset if shown is None else shown:#x}"
    function, file, line = place
    return f"{function} {'/'.join(Path(file).parts[-2:])}:{line}"


def is_place(pc: int, text: str) -> bool:
    """Return True if the code before ``pc`` is at the place ``text``.

    A place is "file:line" or a function, with or without its class and namespace ("push",
    "Ring::push"); arguments and template parameters do not count. Code of a library that was
    inlined is at both places, its own and that of its caller.
    """
    if pc >= FIRST_INTERPRETED:
        function, _, line = describe_pc(pc).rpartition(" ")
        file, _, number = line.rpartition(":")
        return is_named((function.replace(".", "::"), file, int(number or 0)), text)
    found = locate(pc)
    if found is None:
        return False
    at = found[0], found[1] - 1
    place = innermost(*at)
    return place is not None and any(
        is_named(each, text) for each in (place, LIBRARY_PLACES.get(at, place))
    )


def is_named(place: Place, text: str) -> bool:
    """Return True if ``text`` names this place, see :func:`is_place`."""
    function, file, line = place
    name, _, number = text.rpartition(":")
    if name and number.isdigit() and not name.endswith(":"):
        return int(number) == line and f"/{file}".endswith(f"/{name}")
    return f"::{bare_name(function)}".endswith(f"::{text}")


def bare_name(function: str) -> str:
    """Return the name of a C++ function without type, arguments and template parameters."""
    kept, depth = "", 0
    for sign in function:
        depth += (sign in "<(") - (sign in ">)")
        kept += sign if depth == 0 and sign not in ">)" else ""
    return (kept.removesuffix(" const").split() or [""])[-1]


def source_line(pc: int) -> str:
    """Return the source line at ``pc``; "" if the file is missing or newer than the module."""
    if pc >= FIRST_INTERPRETED:
        return next(filter(None, (each.source_line(pc) for each in INTERPRETED)), "")
    place = source_of(pc)
    if place is None:
        return ""
    try:
        return (
            Path(place[0])
            .read_text(encoding="utf-8", errors="replace")
            .splitlines()[place[1] - 1]
            .strip()
        )
    except (OSError, IndexError):
        return ""


def source_of(pc: int) -> tuple[str, int] | None:
    """Return file and line at ``pc``; None if the file is missing or newer than the module."""
    if pc >= FIRST_INTERPRETED:
        return next(filter(None, (each.source_of(pc) for each in INTERPRETED)), None)
    found = locate(pc)
    place = innermost(found[0], found[1] - 1) if found is not None else None
    if found is None or place is None:
        return None
    try:
        if Path(place[1]).stat().st_mtime > Path(found[0]).stat().st_mtime:
            return None
    except OSError:
        return None
    return place[1], place[2]


@functools.cache
def of_engine(pc: int) -> bool:
    """Return True for an address in the engine or the glue, which call operations and tests."""
    found = locate(pc)
    if found is None:
        return False
    if Path(found[0]).name.startswith(("_engine.", "_called.")):
        return True
    place = innermost(found[0], found[1] - 1)
    return place is not None and OF_HARNESS.match(place[0]) is not None


@functools.cache
def library_frame(pc: int) -> bool:
    """Return True for an address in the interpreter, or whose place is in a library's header.

    The place includes inlined calls.
    """
    found = locate(pc)
    if found is not None and OF_INTERPRETER.search(found[0]):
        return True
    place = innermost(found[0], found[1] - 1) if found is not None else None
    return place is not None and OF_LIBRARIES.search(place[1]) is not None


def own_pc(frames: Sequence[int]) -> int:
    """The innermost address of a stack that is in the user's code; of none the innermost one."""
    return next((pc for pc in frames if not of_engine(pc) and not library_frame(pc)), frames[0])


def of_interpreter(pc: int) -> bool:
    """Return True for an address in the interpreter, or in code that Cython puts around calls."""
    found = locate(pc)
    if found is None:
        return False
    place = innermost(found[0], found[1] - 1)
    around = place is not None and place[1].endswith("/cython_utility")
    return around or OF_INTERPRETER.search(found[0]) is not None


def of_library(pc: int) -> bool:
    """Return True for an access that a library's header makes, wherever it was inlined."""
    found = locate(pc)
    if found is None:
        return False
    innermost(found[0], found[1] - 1)  # looks it up
    return (found[0], found[1] - 1) in LIBRARY_PLACES


def innermost(module: str, offset: int) -> Place | None:
    """Return function, file and line of ``offset``.

    Of inlined calls this is the innermost one outside libraries; if there is none, the innermost
    one outside the headers of atomic types.
    """
    if (module, offset) not in KNOWN:
        look_up(module, [offset])
    return KNOWN[module, offset]


def look_up_pcs(pcs: Iterable[int]) -> None:
    """Look up many addresses at once, which takes hardly longer than one."""
    wanted: dict[str, set[int]] = {}
    for module, after in filter(None, map(locate, set(pcs))):
        if (module, after - 1) not in KNOWN:
            wanted.setdefault(module, set()).add(after - 1)
    for module, offsets in wanted.items():
        look_up(module, sorted(offsets))


def look_up(module: str, offsets: Sequence[int]) -> None:
    """Enter the places of ``offsets`` into KNOWN."""
    tool = shutil.which("addr2line")
    KNOWN.update({(module, offset): None for offset in offsets})
    if tool is None:
        return
    answer = subprocess.run(
        [tool, "-e", module, "-a", "-f", "-i", "-C"],
        input="\n".join(map(hex, offsets)),
        capture_output=True,
        text=True,
        errors="surrogateescape",  # a path may have bytes that are no text
        check=False,
    ).stdout
    for block in re.split(r"^(?=0x[0-9a-f]+$)", answer, flags=re.MULTILINE):
        if lines := block.splitlines():
            at = module, int(lines[0], 16)
            every = list(places_of(lines[1:]))
            CALLS[at] = tuple(f"{file} {function}" for function, file, _ in every)
            places = [each for each in every if not OF_ATOMICS.search(each[1])]
            own = [each for each in places if not OF_LIBRARIES.search(each[1])]
            KNOWN[at] = next(iter([*own, *places]), None)
            if places and OF_LIBRARIES.search(places[0][1]):
                LIBRARY_PLACES[at] = places[0]


def places_of(lines: Sequence[str]) -> Iterator[Place]:
    """Yield the places of addr2line's answer, the innermost first: function and place in turn."""
    for function, place in zip(lines[::2], lines[1::2], strict=False):
        file, _, line = place.partition(" (disc")[0].rpartition(":")
        if not place.startswith("?") and line.isdigit():
            yield in_source(function), file, int(line)


def in_source(function: str) -> str:
    """Return a function's name in its source: Cython's mangling is undone, other names stay."""
    if started := THREAD_START.match(function):
        called = REFERENCE.sub(r"\1", started["called"])
        # GCC calls a lambda {lambda()#1}, Clang $_0.
        return called if re.search(r"\{lambda|::\$_\d", called) else "the function of a thread"
    mangled = re.match(r"__pyx_p?f_", function)
    if mangled is None:
        return without_templates(function)
    rest = function[mangled.end() :]
    # The parts of the module's name come first, each behind its length.
    while (part := re.match(r"\d+", rest)) is not None and len(rest) > part.end() + int(part[0]):
        rest = rest[part.end() + int(part[0]) :].removeprefix("_")
    return rest


def without_templates(function: str) -> str:
    """Return a C++ name with its template arguments left out, from the inside, while it is long."""
    shorter = function
    while len(shorter) > LONG_NAME and (found := ARGUMENTS.search(shorter)) is not None:
        shorter = f"{shorter[: found.start()]}{{}}{shorter[found.end() :]}"
    return shorter.replace("{}", "<...>")


def library_file(pc: int) -> str:
    """The header of a library whose code makes an access, wherever it was inlined; or ""."""
    found = locate(pc)
    if found is None or not of_library(pc):
        return ""
    return LIBRARY_PLACES[found[0], found[1] - 1][1]


def is_within(pc: int, pattern: re.Pattern[str]) -> bool:
    """True if a call at an address, inlined ones included, has this file and function."""
    found = locate(pc)
    if found is None:
        return False
    innermost(found[0], found[1] - 1)  # looks it up
    return any(pattern.search(call) for call in CALLS.get((found[0], found[1] - 1), ()))


def library_race(first: int, second: int) -> str:
    """The reason to pass over a race between two addresses that is a library's own; or "".

    std::atomic<std::shared_ptr> of libstdc++ keeps its pointer under a lock, which load() and a
    failed exchange release by a relaxed operation.
    """
    if is_within(first, OF_SHARED_POINTERS) and is_within(second, OF_SHARED_POINTERS):
        return "std::atomic<std::shared_ptr> of libstdc++, google/sanitizers issue 1558"
    return ""


match_places_by(is_place, library_race)
