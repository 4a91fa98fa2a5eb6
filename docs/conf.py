"""The site of these pages, built by ``make docs`` into ``build/docs`` and read without a network.

The sidebar has one group for each reader of ``index.md``, with the pages that are linked there.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from sphinx.application import Sphinx

import pulsar_ml

project = "pulsar_ml"
author = "The pulsar_ml authors"
copyright = f"2026 {author}"
version = release = pulsar_ml.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["examples"]
nitpicky = True
# Types of the standard library and of private modules have no page; nothing is looked up online.
nitpick_ignore_regex = [("py:.*", r"(?!pulsar_ml\.[A-Z]).*")]

myst_heading_anchors = 4

napoleon_use_ivar = True
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "imported-members": True}
add_module_names = False
maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"pulsar_ml {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path: list[str] = []
pygments_style = "friendly"
pygments_dark_style = "monokai"

STUB = Path(pulsar_ml.__file__).with_name("_core.pyi")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
PAGE = re.compile(r"\]\(([\w/-]+)\.md(?:#[^)]*)?\)")


def add_sidebar(app: Sphinx, name: str, source: list[str]) -> None:
    """Append a table of contents for each section of the first page: the pages that it links."""
    if name != "index":
        return
    _, *parts = HEADING.split(source[0])
    listed: set[str] = set()
    for heading, text in zip(parts[::2], parts[1::2], strict=True):
        pages = [page for page in dict.fromkeys(PAGE.findall(text)) if page not in listed]
        listed |= set(pages)
        source[0] += "\n".join(
            ["\n```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```\n"]
        )


def constructors() -> dict[str, str]:
    """Return the arguments of the compiled classes that can be constructed, from their stub."""
    found = {}
    for node in ast.parse(STUB.read_text()).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for member in node.body:
            if isinstance(member, ast.FunctionDef) and member.name == "__new__":
                found[node.name] = ast.unparse(member.args).removeprefix("cls").removeprefix(", ")
    return found


def add_constructors(app: Sphinx, name: str, source: list[str]) -> None:
    """Give each compiled class its constructor's signature, which autodoc cannot read."""
    for of, arguments in constructors().items() if name.startswith("api/") else ():
        source[0] = re.sub(rf"(autoclass:: {of})$", rf"\1({arguments})", source[0], flags=re.M)


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_sidebar)
    app.connect("source-read", add_constructors)
