"""The checked twin of a plain module: built again for the engine, from the same sources."""

from __future__ import annotations

from pathlib import Path

from pulsar_ml.errors import UsageError
from pulsar_ml.harness.building.build import build_extension
from pulsar_ml.harness.building.build_call import CALL, read_call


def checked_twin(module: str) -> Path:
    """Return the checked build of the sources of a plain module; builds it if it is missing.

    Raises UsageError when it is not known how the module was built, or its source is gone, and
    BuildError with the compiler's output.
    """
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
