"""The help of every command fits a terminal of 80 columns and is complete there."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from pulsar_ml.cli import main

COLUMNS = 80


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, group
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {each}")
        else:
            yield f"{name} {each}", command


COMMANDS = dict(commands(main, "pulsar-ml"))


def complaints(command: click.Command, name: str) -> list[str]:
    # A command keeps its option for help as the first context has it.
    context = click.Context(
        command, info_name=name, terminal_width=COLUMNS, **command.context_settings
    )
    text = command.get_help(context)
    _, *lines = text.splitlines()  # the first one ends with "[ARGS]..."
    return [line for line in lines if len(line) > COLUMNS or line.endswith("...")]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_and_is_not_cut(name: str) -> None:
    assert not complaints(COMMANDS[name], name)


def test_long_examples_and_cut_sentences_are_noticed() -> None:
    @click.group()
    def group() -> None:
        """\b
        xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxxxxxx xxxxx
        """

    @group.command()
    def long() -> None:
        """Do one thing, and another thing, and a third one, and print the URL of the last."""

    assert len(complaints(group, "group")) == 2


def test_there_are_many_commands() -> None:
    assert {"pulsar-ml", "pulsar-ml sweep", "pulsar-ml cluster start"} <= set(COMMANDS)
    assert len(COMMANDS) > 20
