"""Writes failures of tests as Markdown, as for the summary of a job, with their lanes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST_CHARACTERS = 500_000  # a job's summary has at most a megabyte
MOST_LANES = 20_000  # characters of one failure
MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&$@])")


@dataclass(frozen=True, slots=True)
class FailedTest:
    """The failure of a test: ``text`` has its lanes, ``note`` is the baseline's if it is known."""

    test: str
    signature: str
    message: str
    text: str
    note: str = ""


def plain(text: str) -> str:
    """Escapes a text for Markdown and puts it on one line."""
    return MARKUP.sub(r"\\\1", " ".join(text.split()))


def summary_of_tests(headline: str, failed: Sequence[FailedTest]) -> str:
    """The headline, a table of the failures, and the lanes of each, the new ones open."""
    lines = [f"## {plain(headline)}", ""]
    if failed:
        lines += ["| test | failure | signature | baseline |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {plain(one.test)} | {plain(one.message[:300])} | {one.signature} | "
        f"{plain(one.note) or 'new'} |"
        for one in failed
    ]
    size = sum(map(len, lines))
    for one in failed:
        block = ["", *lanes_block(f"{one.test}: {one.message}", one.text, is_open=not one.note)]
        size += sum(map(len, block))
        if size > MOST_CHARACTERS:
            lines += ["", "The lanes of further failures are left out."]
            break
        lines += block
    return "\n".join(lines) + "\n"


def lanes_block(title: str, text: str, *, is_open: bool = False) -> list[str]:
    """A text of fixed width that folds; nothing in it ends the block."""
    text = text[:MOST_LANES].rstrip()
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    start = "<details open>" if is_open else "<details>"
    return [
        f"{start}<summary>{plain(title)}</summary>", "", f"{fence}text", text, fence, "",
        "</details>",
    ]  # fmt: skip
