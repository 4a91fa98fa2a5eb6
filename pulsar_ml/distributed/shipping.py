"""Packs the pure-Python code that executors need and that is installed nowhere: suites and tasks."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

from pulsar_ml.errors import UsageError


def pack(target: Path, registry: str) -> Path:
    """Writes the zip that goes to the executors' import path; equal sources give equal bytes.

    It holds this package and the one that the module ``registry`` belongs to. Raises ``UsageError``
    when there is no such module.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for root, source in dict.fromkeys(
            sources(registry.partition(".")[0]) if not registry.startswith("pulsar_ml.") else []
        ):
            entry = zipfile.ZipInfo(source.relative_to(root).as_posix())
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, source.read_bytes())
    return target


def sources(name: str) -> list[tuple[Path, Path]]:
    """The Python files of a top-level package or module, each with the directory it is imported from."""
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
    """A directory for the import path of executors on this machine that shows pulsar_ml and nothing else.

    It lets them run the very build that this process uses, also one that was built in place. The rest
    of the checkout stays out of their sight, so that code which was not shipped is missing here too.
    """
    import pulsar_ml

    assert pulsar_ml.__file__ is not None
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "pulsar_ml").symlink_to(Path(pulsar_ml.__file__).resolve().parent)
    return directory
