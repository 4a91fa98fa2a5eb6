"""Signatures of operations: ``bool pop(int&)`` read into arguments, results and their ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pulsar_ml.errors import UsageError

MOST_ARGUMENTS = 3
MOST_OUTPUTS = 4  # values of one answer
LARGEST = 2**63 - 1
RANGE = (1, 4)  # of an argument without a range: small, so that values repeat
SELF = "self"

SIGNATURE = re.compile(
    r"(?P<result>.*?)(?<![\w:])(?P<name>(?:\w+::)*[A-Za-z_]\w*)\s*\((?P<parameters>.*)\)"
    r"[\s\w]*;?\s*",
    re.DOTALL,
)
WITH_RANGE = re.compile(r"(?P<type>.*?)\s+in\s+(?P<low>-?\d+)\s*\.\.\s*(?P<high>-?\d+)\s*")
NAMED = re.compile(r"(?P<type>.*[\w>&*\s])(?<![\w:])(?P<name>[A-Za-z_]\w*)")
# Words that are part of a type when they end it.
TYPE_WORDS = frozenset(
    [
        "bool",
        "bint",
        "char",
        "const",
        "double",
        "float",
        "int",
        "long",
        "short",
        "signed",
        "size_t",
        "unsigned",
        "void",
        "volatile",
    ]
)
FLAGS = frozenset({"bool", "bint", "_Bool"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a method.

    Attributes:
        type: its C type; of an output the type of the value that is written.
        name: its name in the signature, or the one that it gets.
        low, high: the range of an argument, both ends inclusive.
        output: "" for an argument, "&" or "*" for a value that the method writes.
    """

    type: str
    name: str
    low: int = 0
    high: int = 0
    output: str = ""


@dataclass(frozen=True, slots=True)
class Method:
    """An operation, and the function or method that it calls.

    Attributes:
        operation: the operation's name in programs and in the model.
        name: the function's name.
        result: its type as written; "" if the signature does not say it.
        parameters: arguments and outputs in the order of the call, without ``self``.
        on: the place of ``self`` among the parameters of a free function; -1 for a method.
        text: the signature as written.
    """

    operation: str
    name: str
    result: str
    parameters: tuple[Parameter, ...]
    on: int
    text: str

    @property
    def arguments(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if not each.output)

    @property
    def outputs(self) -> tuple[Parameter, ...]:
        return tuple(each for each in self.parameters if each.output)

    @property
    def flag(self) -> bool:
        """True when the declared result is a truth value."""
        return self.result in FLAGS

    def call(self, target: str, member: str) -> str:
        """The call in the structure's language; ``member`` is ``.`` or ``->``."""
        words = [("&" if each.output == "*" else "") + each.name for each in self.parameters]
        if self.on >= 0:
            words.insert(self.on, target)
            return f"{self.name}({', '.join(words)})"
        return f"{target}{member}{self.name}({', '.join(words)})"


def read_method(operation: str, text: str) -> Method:
    """Read the signature of an operation.

    ``push(int)``, ``bool pop(int& value)``, ``std::optional<int> get(int key in 1..3)``, and for a
    free function ``bool ring_push(self, int)``. Raises UsageError when it is none.
    """

    def wrong(reason: str) -> UsageError:
        return UsageError(
            f'{operation}="{text}": {reason}; a signature is like "bool push(int value in 1..9)"'
        )

    if not operation.isidentifier():
        raise wrong(f"{operation!r} is no name of an operation")
    found = SIGNATURE.fullmatch(text.strip())
    if found is None:
        raise wrong("this is no signature")
    parameters: list[Parameter] = []
    on = -1
    for number, part in enumerate(parts(found["parameters"])):
        if part == SELF:
            if on >= 0:
                raise wrong("self stands twice")
            on = number
            continue
        try:
            parameters.append(parameter(part, len(parameters)))
        except ValueError as error:
            raise wrong(str(error)) from None
    names = [each.name for each in parameters]
    if len(set(names)) < len(names):
        raise wrong("two parameters have one name")
    result = " ".join(found["result"].split())
    method = Method(operation, found["name"], result, tuple(parameters), on, text)
    if len(method.arguments) > MOST_ARGUMENTS:
        raise wrong(f"an operation has at most {MOST_ARGUMENTS} arguments")
    if len(method.outputs) + (result not in ("", "void")) > MOST_OUTPUTS:
        raise wrong(f"an answer has at most {MOST_OUTPUTS} values")
    return method


def nearest_of(name: str, known: Sequence[str]) -> str:
    """A sentence with the nearest of the known names, or with all of them."""
    nearest = get_close_matches(name, known, 1)
    return (
        f"did you mean {nearest[0]!r}?" if nearest else f"there are: {', '.join(known) or 'none'}"
    )


def parts(text: str) -> list[str]:
    """Split the parameters at the commas that are in no brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "<([{") - (letter in ">)]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    cut = [" ".join(part.split()) for part in found]
    return [] if cut in ([""], ["void"]) else cut


def parameter(text: str, number: int) -> Parameter:
    """Read one parameter; ValueError says why it is none."""
    if not text:
        raise ValueError("a parameter is missing")
    ranged = WITH_RANGE.fullmatch(text)
    declared = ranged["type"] if ranged else text
    named = NAMED.fullmatch(declared)
    name = f"value{number or ''}"
    if named is not None and named["name"] not in TYPE_WORDS and named["type"].strip() != "const":
        declared, name = named["type"].strip(), named["name"]
    written = declared.replace(" &", "&").replace(" *", "*")
    constant = written.startswith("const ") or " const" in written
    if written.endswith("&&"):
        return in_range(written[:-2], name, ranged)
    for mark in "&*":
        opaque = mark == "*" and written in ("void*", "char*")
        if written.endswith(mark) and not constant and not opaque:
            if ranged is not None:
                raise ValueError(f"{name!r} is written by the method, so that it has no range")
            return Parameter(written[:-1].strip(), name, output=mark)
    return in_range(written.removeprefix("const ").rstrip("&").strip(), name, ranged)


def in_range(declared: str, name: str, ranged: re.Match[str] | None) -> Parameter:
    low, high = (0, 1) if declared in FLAGS else RANGE
    if ranged is not None:
        low, high = int(ranged["low"]), int(ranged["high"])
    if not -LARGEST <= low <= high <= LARGEST:
        raise ValueError(f"the range {low}..{high} of {name!r} is empty or beyond 64 bits")
    return Parameter(declared, name, low, high)
