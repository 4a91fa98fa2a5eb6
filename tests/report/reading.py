"""Runs the command ``report``, and parses its page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from click.testing import CliRunner, Result

from pulsar_ml.cli import main


def report(run: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["report", str(run), *options])


def page_of(run: Path, *options: str) -> str:
    report(run, *options)
    return (run / "report.html").read_text()


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""
