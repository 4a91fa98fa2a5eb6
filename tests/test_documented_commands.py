"""Every command line of the pages names a command and options that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click
import pytest

from pulsar_ml.cli import main
from tests import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```.*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`(?:python -m pulsar_ml|pulsar-ml) ([^`]+)`")
LINE = re.compile(r"^(?:\$ )?(?:nohup )?(?:python -m pulsar_ml|pulsar-ml) (.+)$", re.MULTILINE)
INNER = re.compile(r"\$\((?:pulsar-ml )?[^()]*\)")


def command_lines(text: str) -> Iterator[str]:
    """Yield the arguments of each command line in blocks and code spans, without remarks."""
    blocks = "\n".join(FENCE.findall(text)).replace("\\\n", " ")
    for found in LINE.finditer(INNER.sub("X", blocks)):
        yield re.split(r"\s{2,}(?![-\s])|\s+[#|>;&]", found[1])[0]
    for found in SPAN.finditer(FENCE.sub("", text)):
        yield found[1].replace("\n", " ")


def complaint(line: str, group: click.Group) -> str:
    """Return what is wrong with a command line, or ""."""
    command: click.Command = group
    words = line.split()
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        below = command.get_command(click.Context(command), name)
        if below is None:
            return "" if name.isupper() else f"no command {name!r} in: {line}"
        command = below
    known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    known |= {"--help", "-h"}
    for word in words:
        option = word.partition("=")[0]
        if re.match(r"--?[a-z]", option) and option not in known:
            return f"no option {option!r} in: {line}"
    return ""


def complaints(pages: Mapping[str, str], group: click.Group) -> list[str]:
    return [
        f"{path}: {found}"
        for path, text in pages.items()
        for line in command_lines(text)
        if (found := complaint(line, group))
    ]


def texts() -> dict[str, str]:
    return {path.relative_to(ROOT).as_posix(): path.read_text() for path in PAGES}


def test_every_documented_command_exists() -> None:
    found = complaints(texts(), main)
    assert not found, "\n" + "\n".join(found)


def test_the_pages_show_many_commands() -> None:
    lines = [line for text in texts().values() for line in command_lines(text)]
    assert len(lines) > 80
    assert {line.split()[0] for line in lines} > {"sweep", "run", "explore", "replay", "report"}


@click.group()
def example() -> None:
    """A group for the tests below."""


@example.command()
@click.option("--seed", "-s")
@click.option("--fast/--slow")
def play(seed: str, fast: bool) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    "text",
    [
        "```\npulsar-ml gone\n```\n",
        "```console\n$ pulsar-ml play --sed 1\n```\n",
        "```\npulsar-ml play \\\n  --gone\n```\n",
        "```\nnohup pulsar-ml play --gone=1 &\n```\n",
        "```\npulsar-ml play      --gone\n```\n",
        "Use `pulsar-ml play\n--gone`.\n",
        "Use `python -m pulsar_ml gone`.\n",
        "```\npulsar-ml play -x\n```\n",
    ],
)
def test_a_wrong_command_is_noticed(text: str) -> None:
    assert len(complaints({"page": text}, example)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "```\npulsar-ml play --seed 1 --slow -s 2      what --gone would do\n```\n",
        "```\npulsar-ml play $(pulsar-ml gone) | grep --gone\n```\n",
        "Use `pulsar-ml play --seed=1`, or `pulsar-ml COMMAND --help`.\n",
        "```\nother gone\n```\n",
    ],
)
def test_a_right_command_is_accepted(text: str) -> None:
    assert complaints({"page": text}, example) == []
