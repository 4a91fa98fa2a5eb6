"""The page for authors of extensions: its files and commands, from the first race to the end."""

from __future__ import annotations

from pathlib import Path

from tests import ROOT
from tests.pages import Reader, blocks, write

PAGE = ROOT / "docs" / "free-threading.md"


def test_an_extension_becomes_compatible(tmp_path: Path) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    Reader(folder).follow(PAGE)


def test_the_page_fails_without_its_lock(tmp_path: Path) -> None:
    """A negative control: the extension of the end with the lock of its reader taken out."""
    folder = tmp_path / "page"
    folder.mkdir()
    for block in blocks(PAGE):
        if block.file:
            write(block, folder)
    source = folder / "tally.pyx"
    locked = "        with self.lock:\n            return"
    assert source.read_text().count(locked) == 1
    source.write_text(source.read_text().replace(locked, "        return"))
    printed = Reader(folder).run("pulsar-ml check check_tally.py --semantics free")
    assert printed[-1] == "1 clean, 1 failed"
