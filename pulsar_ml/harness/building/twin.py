"""The checked twin of a plain module: built again for the engine, from the same sources."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pulsar_ml.errors import UsageError
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


def checked_twin(module: str) -> Path:
    """Return the checked build of the sources of a plain module; builds it if it is missing.

    Raises UsageError when it is not known how the module was built, or its source is gone, and
    BuildError with the compiler's output.
    """
    from pulsar_ml.harness.building.build import build_extension

    path = Path(module)
    note = path.with_name(CALL)
    if not note.is_file():
        raise UsageError(
            f"the engine needs the checked build of {module}, and nothing beside that module says "
            "how it was built; build its source by pulsar-ml build --checked, and name the result "
            "with --module"
        )
    call = read_call(note)
    if not Path(call.source).is_file():
        raise UsageError(
            f"the engine needs the checked build of {module}, whose source {call.source} is gone; "
            "get it back, or name a checked build of the same source with --module"
        )
    return build_extension(
        Path(call.source),
        into=path.resolve().parents[1],
        name=path.name.partition(".")[0],
        include=[Path(folder) for folder in call.include],
        macros=call.macros,
        flags=call.flags,
        language=call.language,
        checked=True,
        volatile=call.volatile,
    )
