"""Sources that changed since a budget last reached all their tests, by digests of their contents.

The digests lie beside the cache of builds. That of a source covers the file, and the files that it
includes or imports by a name found beside it or in the folders of ``-I``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

NAME = "explored.json"
MOST_FILES = 1_000  # of one source
MOST_BYTES = 16 << 20  # of a file that is read
INCLUDED = re.compile(rb'^[ \t]*#?[ \t]*include[ \t]+["\']([^"\'\n]+)["\']', re.MULTILINE)
IMPORTED = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+c?import\b|c?import[ \t]+([\w., \t]+))", re.MULTILINE
)
C_FILES = (".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".hxx", ".inc", ".ipp")
MODULES = (".py", ".pyx", ".pxd", "/__init__.py", "/__init__.pxd")


def digest(source: Path, folders: Sequence[Path] = ()) -> str:
    """A digest of a source and the local files that it reads; "" when it cannot be read."""
    key = hashlib.sha256()
    for path in sorted(read_by(source.resolve(), folders)):
        with suppress(OSError):
            key.update(f"{path.name}\0".encode(errors="surrogateescape"))
            key.update(hashlib.sha256(content(path)).digest())
    return key.hexdigest()


def read_by(source: Path, folders: Sequence[Path]) -> set[Path]:
    """The source, and the files that it includes or imports, directly or by way of others."""
    found, waiting = {source}, [source]
    while waiting and len(found) < MOST_FILES:
        path = waiting.pop()
        with suppress(OSError):
            for other in names_in(path, content(path)):
                for folder in (path.parent, source.parent, *folders):
                    one = Path(os.path.normpath(folder / other))
                    if one not in found and one.is_file():
                        found.add(one)
                        waiting.append(one)
    return found


def names_in(path: Path, text: bytes) -> Iterable[str]:
    """The names of files that a source includes, and those that its imports may stand for."""
    for match in INCLUDED.finditer(text):
        yield match[1].decode(errors="surrogateescape")
    if path.suffix in C_FILES:
        return
    if path.suffix == ".pyx":
        yield f"{path.stem}.pxd"
    for match in IMPORTED.finditer(text):
        for name in (match[1] or match[2]).decode().split(","):
            dotted = name.split()[0].lstrip(".") if name.split() else ""
            yield from (dotted.replace(".", "/") + ending for ending in MODULES if dotted)


def content(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES)


def read_digests(folder: Path) -> dict[str, str]:
    """The digests of an earlier command; none where there is no file, or a damaged one."""
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(content(folder / NAME))
        if isinstance(kept, dict):
            return {str(path): str(value) for path, value in kept.items()}
    return {}


def write_digests(folder: Path, digests: Mapping[str, str]) -> None:
    """Keep the digests of sources whose tests were all reached, beside those of others."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / f"{NAME}.{os.getpid()}"
    kept.write_text(json.dumps({**read_digests(folder), **digests}, indent=1, sort_keys=True))
    os.replace(kept, folder / NAME)


def changed_first(
    sources: Sequence[Path], folder: Path, folders: Sequence[Path] = ()
) -> tuple[list[int], dict[str, str]]:
    """The order of sources, those that changed first, and the digests of all by their names."""
    known = read_digests(folder)
    names = [name_of(path) for path in sources]
    digests = {name: digest(path, folders) for name, path in zip(names, sources, strict=True)}
    order = sorted(range(len(sources)), key=lambda at: known.get(names[at]) == digests[names[at]])
    return order, digests


def name_of(path: Path) -> str:
    """The name of a source in the file of digests: as seen from the current folder."""
    return os.path.relpath(path)
