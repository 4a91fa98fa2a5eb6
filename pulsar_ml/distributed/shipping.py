"""Packs the suites that are installed nowhere, for the import path of executors."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

from pulsar_ml.errors import UsageError


def is_installed(registry: str) -> bool:
    """Return True for suites of pulsar_ml, which executors have."""
    return registry.startswith("pulsar_ml.")


def pack(target: Path, registry: str) -> Path:
    """Writes the zip with the top-level package of ``registry``; equal sources give equal bytes.

    Raises ``UsageError`` when there is no such module.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for root, source in dict.fromkeys(sources(registry.partition(".")[0])):
            entry = zipfile.ZipInfo(source.relative_to(root).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return target


def sources(name: str) -> list[tuple[Path, Path]]:
    """The Python files of a top-level package or module, each with its import directory."""
    spec = find_spec(name)
    if spec is None or spec.origin is None or not spec.has_location:
        raise UsageError(
            f"{name} is no module and no package with an __init__.py: executors cannot have it"
        )
    origin = Path(spec.origin)
    if not spec.submodule_search_locations:
        return [(origin.parent, origin)]
    package = origin.parent
    return [(package.parent, source) for source in sorted(package.rglob("*.py"))]


def link_installed(directory: Path) -> Path:
    """Makes a directory that holds pulsar_ml alone, for the import path of executors here.

    Executors then run the build of this process, also one that was built in place. They do not see
    the rest of a checkout, so that code which was not shipped is missing here, too.
    """
    import pulsar_ml

    assert pulsar_ml.__file__ is not None
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pulsar_ml").symlink_to(Path(pulsar_ml.__file__).resolve().parent)
    return directory
