"""The site is built without a warning, reads nothing from a network, and no link leads nowhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from myst_parser.slugs import github_slugify, unique_slug

import pulsar_ml
import pulsar_ml.harness
from tests import ROOT

DOCS = ROOT / "docs"
# Pages that people read in the repository, where Sphinx does not look.
FIRST_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

LINK = re.compile(r"(?<!`)!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
# Whatever a browser loads by itself; a link that a reader may click is none.
LOADED = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?\s(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|url\(\s*["']?((?:https?:)?//[^"')\s]+)|@import\s+["']((?:https?:)?//[^"']+)"""
)


def build(pages: Path, into: Path) -> subprocess.CompletedProcess[str]:
    """Build a site as ``make docs`` does."""
    command = ("-m", "sphinx", "-b", "html", "-q", "-W", "--keep-going")
    return subprocess.run(
        [sys.executable, *command, "-c", str(DOCS), "-d", str(into / ".doctrees"), str(pages), str(into)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip


def remote(text: str) -> list[str]:
    """List what a page or a style sheet would load from a network."""
    return ["".join(found) for found in LOADED.findall(text)]


def slugs(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and the site make them."""
    found: set[str] = set()
    for title in HEADING.findall(FENCE.sub("", page)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*]", r"\1", title)
        found.add(unique_slug(github_slugify(text), found))
    return found


def dead_links(pages: Mapping[str, str], root: Path = ROOT) -> Iterator[str]:
    """Name each link of ``pages`` (texts by path) to a file or an anchor that does not exist."""
    for path, text in pages.items():
        for link in LINK.findall(FENCE.sub("", text)):
            if re.match(r"\w+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (root / path).parent / name if name else root / path
            if not target.exists():
                yield f"{path}: {link}"
            elif anchor and anchor not in slugs(target.read_text()):
                yield f"{path}: {link} (no such heading)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = build(DOCS, into)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return into


def test_every_page_is_in_the_site(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    built = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    assert built - pages == {Path("genindex"), Path("search"), Path("py-modindex")} & built
    assert pages <= built


def test_the_site_loads_nothing_from_a_network(site: Path) -> None:
    read = [path for end in ("html", "css") for path in site.rglob(f"*.{end}")]
    assert len(read) > 50
    assert {path.name: remote(path.read_text()) for path in read if remote(path.read_text())} == {}


def test_the_site_can_be_searched(site: Path) -> None:
    index = (site / "searchindex.js").read_text()
    assert '"testing-your-own"' in index
    assert "linearizab" in index


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        "<img src=http://example.org/x.png>",
        "a { background: url('https://example.org/x.png') }",
        '@import "https://example.org/x.css";',
    ],
)
def test_what_a_page_loads_is_noticed(text: str) -> None:
    assert len(remote(text)) == 1


def test_a_link_to_click_is_not_loaded() -> None:
    assert remote('<a href="https://example.org">there</a><script src="x.js"></script>') == []


def test_dead_links_fail_the_build(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# First\n\n## Pages\n\n[other](other.md#there)\n")
    (pages / "other.md").write_text("# Other\n\n## There\n")
    right = build(pages, tmp_path / "right")
    assert right.returncode == 0, right.stderr
    dead = ["gone.md", "#nowhere", "other.md#nobody", "gone.py"]
    links = "\n".join(f"[{link}]({link})\n" for link in dead)
    (pages / "index.md").write_text(f"# First\n\n## Pages\n\n[other](other.md)\n{links}")
    wrong = build(pages, tmp_path / "wrong")
    assert wrong.returncode != 0
    for link in dead:
        assert f"'{link.rpartition('#')[2]}'" in wrong.stderr


def test_no_link_of_the_first_pages_is_dead() -> None:
    assert list(dead_links({path: (ROOT / path).read_text() for path in FIRST_PAGES})) == []


def test_a_dead_link_of_a_first_page_is_noticed(tmp_path: Path) -> None:
    page = "# One `two`\n\n[a](#one-two) [b](there.md#x) [c](gone.md) [d](#gone) ![e](no.svg)\n"
    (tmp_path / "page.md").write_text(page)
    (tmp_path / "there.md").write_text("# X\n```\n# Y\n```\n[f](#y)\n")
    found = list(dead_links({"page.md": page}, tmp_path))
    assert found == ["page.md: gone.md", "page.md: #gone (no such heading)", "page.md: no.svg"]
    text = (tmp_path / "there.md").read_text()
    assert list(dead_links({"there.md": text}, tmp_path)) == ["there.md: #y (no such heading)"]


@pytest.mark.parametrize(
    ("page", "names"),
    [("pulsar_ml", pulsar_ml.__all__), ("harness", getattr(pulsar_ml.harness, "__all__", []))],
)
def test_the_reference_has_each_public_name_once(page: str, names: list[str]) -> None:
    text = (DOCS / "api" / f"{page}.md").read_text()
    documented = []
    for block in re.findall(r"^```{eval-rst}\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        modules = re.findall(r"^\.\. automodule:: [\w.]+\.(\w+)$", block, re.MULTILINE)
        members = re.findall(r"^\.\. auto(?!module)\w+:: (\w+)", block, re.MULTILINE)
        documented += modules or members  # a member of a module is not a name of the page
    assert sorted(documented) == sorted(names)


def test_the_readme_is_in_step_with_the_licence() -> None:
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert "The Apache Software Foundation" in (ROOT / "NOTICE").read_text()
    assert f"## [{pulsar_ml.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
