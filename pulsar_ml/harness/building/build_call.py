"""The call that built a module, kept beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pulsar_ml.input_files import bounded_text
from pulsar_ml.versioned_json import build, read_object

CALL = "build.json"  # beside a module: the call that built it
KIND = "pulsar_ml build"
VERSION = 1


@dataclass(frozen=True, slots=True)
class BuildCall:
    """The arguments with which ``build_extension`` built a module.

    Attributes:
        source: the path of the ``.pyx`` file.
        include, macros, flags, language, volatile: as of ``build_extension``.
    """

    source: str
    include: tuple[str, ...] = ()
    macros: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    language: str = "c"
    volatile: str = "plain"

    def to_json(self) -> str:
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, sort_keys=True)


def read_call(path: Path) -> BuildCall:
    """Read the call in a file. Raises BadRecordError for damage."""
    what = f"the build call {path}"
    text = bounded_text(path, "the build call")
    return build(BuildCall, read_object(text, what, kind=KIND, versions=(VERSION,)), what)
