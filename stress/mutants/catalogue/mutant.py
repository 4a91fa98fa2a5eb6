"""What a mutant is: a bug, the text it replaces and what must catch it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong change of the native core.

    Attributes:
        id: short name, also on the command line.
        title: the mistake in a few words.
        origin: the issue or pull request of Apache Pulsar where it was seen, or "port" for a mistake that a
            port may make.
        file: path below ``pulsar_ml/``.
        old: lines that occur exactly once in the file; they may be indented further there.
        new: lines in their place.
        suite: the suite that must report it.
        breaks: invariants it breaks, for the reader.
        rare: real threads need some hundreds of trials or more; swept only when it is named.
        mode: "" for what real threads show. Otherwise only the controlled engine looks for it, in this
            mode: it takes weak memory, or a moment that real threads hardly meet.
        helper: functions to put before the function that is changed.
        cimports: declarations that the new text needs.
    """

    id: str
    title: str
    origin: str
    file: str
    old: str
    new: str
    suite: str
    breaks: str
    rare: bool = False
    helper: str = ""
    cimports: str = ""
    mode: str = ""
