"""The environment of the pages' templates, their style sheets, and their security policy.

Texts of a run are never markup: the templates escape them, scripts insert texts from JSON, and the
policy forbids any other script.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import jinja2

TEMPLATES = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """The environment of the templates, which escape every text of a run."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def style_of(*names: str) -> str:
    """Style sheets of the templates, joined."""
    return "".join((TEMPLATES / f"{name}.css").read_text("utf-8") for name in names)


def script_of(*names: str) -> str:
    """Scripts of the templates, joined."""
    return "".join((TEMPLATES / f"{name}.js").read_text("utf-8") for name in names)


def policy(style: str, script: str) -> str:
    """The content security policy: the page's own style and script, and nothing else."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
