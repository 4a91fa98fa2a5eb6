"""The rules of names over the stub of the core: one way to say a time, one name for a position."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.house.architecture_rules import Sources

STUB = "pulsar_ml/_core.pyi"

# A name that ends so is a time in nanoseconds or milliseconds.
TIME = re.compile(r"_(ms|ns)$")
# Another unit, or a unit in another spelling, anywhere in a name.
OTHER_UNITS = re.compile(
    r"(?:^|_)(millis|milliseconds?|nanos|nanoseconds?|micros|us|microseconds?|seconds?|secs?|sec"
    r"|minutes?)(?:_|$)"
)
# A name that means a time as its last word, and so lacks its unit.
UNITLESS = re.compile(
    r"(?:^|_)(now|time|timestamp|timeout|interval|deadline|delay|duration|grace|age|idle|expiry"
    r"|deliver_at|leaves|threshold)$"
)
# A moment: of the monotonic clock in nanoseconds, or of the clock of messages in milliseconds. All
# other times are durations.
MOMENT = re.compile(r"^(?:now|timestamp|deliver_at|next_\w+)_(ms|ns)$")
WHOLE = {"int", "SupportsIndex", "_Numbers"}
# The only names of a single stored position and of several.
POSITION, POSITIONS = "_At", "_Positions"
POSITION_NAMES = {"position", "mark_delete_position", "first", "last"}


@dataclass(frozen=True, slots=True)
class Name:
    """A value of the face: a parameter, an attribute, or what a property or method returns."""

    line: int
    owner: str
    name: str
    kind: str  # its annotation, without None

    def __str__(self) -> str:
        return f"{STUB}:{self.line} {self.owner}: {self.name}: {self.kind}"


def annotation(node: ast.expr | None) -> str:
    return re.sub(r" \| None$", "", ast.unparse(node)) if node is not None else ""


def names(sources: Sources) -> Iterator[Name]:
    for owner in ast.parse(sources.get(STUB, "")).body:
        if not isinstance(owner, ast.ClassDef):
            continue
        for member in owner.body:
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                kind = annotation(member.annotation)
                yield Name(member.lineno, owner.name, member.target.id, kind)
            if not isinstance(member, ast.FunctionDef):
                continue
            returns = annotation(member.returns)
            if returns in {"int", "float"}:
                yield Name(member.lineno, owner.name, member.name, returns)
            arguments = member.args
            for each in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
                if each.arg not in {"self", "cls"}:
                    place = f"{owner.name}.{member.name}"
                    yield Name(each.lineno, place, each.arg, annotation(each.annotation))


def times_are_whole_numbers_with_a_unit(sources: Sources) -> list[str]:
    """A time is an integer whose name ends with ``_ms`` or ``_ns``."""
    found = []
    for each in names(sources):
        if OTHER_UNITS.search(each.name):
            found.append(f"{each} names another unit than _ms or _ns")
        elif TIME.search(each.name) and each.kind not in WHOLE:
            found.append(f"{each} is a time and no whole number")
        elif UNITLESS.search(each.name) and each.kind in WHOLE | {"float"}:
            found.append(f"{each} has no unit; end it with _ms or _ns")
    return found


def a_unit_says_which_clock(sources: Sources) -> list[str]:
    """Durations are ``_ms``; the moments of a class are of one clock, and so of one unit."""
    found = []
    units: dict[str, str] = {}
    for each in names(sources):
        if moment := MOMENT.search(each.name):
            owner = each.owner.partition(".")[0]
            if units.setdefault(owner, moment[1]) != moment[1]:
                found.append(f"{each} is of another clock than the moments before it")
        elif each.name.endswith("_ns"):
            found.append(f"{each} is a duration in nanoseconds; durations end with _ms")
    return found


def positions_have_one_name(sources: Sources) -> list[str]:
    """A parameter that takes a position is named so, and one that takes many is ``positions``."""
    return [
        f"{each} takes a position under another name"
        for each in names(sources)
        if (each.kind == POSITION and each.name not in POSITION_NAMES)
        or (each.kind == POSITIONS) is not (each.name == "positions")
    ]
