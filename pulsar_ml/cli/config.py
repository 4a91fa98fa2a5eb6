"""``python -m pulsar_ml config``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pulsar_ml.config import (
    BY_ANY_KEY,
    SETTINGS,
    Reading,
    Setting,
    read_broker_conf,
    read_mapping,
    without_effect,
)
from pulsar_ml.config.setting import PULSAR
from pulsar_ml.errors import UsageError

if TYPE_CHECKING:
    from rich.text import Text


def chosen(keys: Sequence[str]) -> list[Setting]:
    """The settings of these keys, all without any.

    A part of a key stands for every key that has it.
    """
    if not keys:
        return list(SETTINGS)
    found: list[Setting] = []
    for key in keys:
        exact = [BY_ANY_KEY[key]] if key in BY_ANY_KEY else []
        part = [
            setting
            for setting in SETTINGS
            if key.lower() in setting.key.lower() or key == setting.name
        ]
        if not exact and not part:
            raise UsageError(f"no setting has {key!r} in its key; list them all with --explain")
        found += [setting for setting in exact or part if setting not in found]
    return found


def shown(setting: Setting, reading: Reading) -> str:
    """The effective value with its unit, marked when it is derived from other settings."""
    value = reading.config.effective(setting.key)
    if value is None:
        return "no limit (derived)"
    unit = f" {setting.unit}" if setting.unit and setting.unit != "fraction" else ""
    derived = " (derived)" if getattr(reading.config, setting.name) is None else ""
    return setting.format(value) + unit + derived


def description(setting: Setting, idle: str | None) -> Text:
    from rich.text import Text

    what = Text(setting.key, style="bold")
    what.append(f"\n{setting.meaning}", style="not bold")
    what.append(f"\nTakes {setting.allowed}.", style="not bold")
    if setting.derived:
        what.append(f" Unset: {setting.derived}.", style="not bold")
    what.append(
        " May change while running." if setting.dynamic else " Set at start.", style="not bold"
    )
    if setting.interplay:
        what.append(f"\n{setting.interplay}", style="not bold dim")
    if setting.origin != PULSAR:
        what.append(f"\nFrom: {setting.origin}.", style="not bold dim")
    if idle is not None:
        what.append(f"\nWithout effect: {idle}.", style="not bold yellow")
    return what


def explain(settings: Sequence[Setting], reading: Reading) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    idle = without_effect(reading.config)
    table = Table(title="settings of the cache", show_lines=True)
    table.add_column("key, what it does, and what it depends on", ratio=1)
    for column in ("value", "default", "from"):
        table.add_column(column, overflow="fold")
    for setting in settings:
        table.add_row(
            description(setting, idle.get(setting.key)),
            Text(shown(setting, reading)),
            setting.format(setting.default) or "derived",
            Text(Path(reading.origins[setting.key]).name),
        )
    console = Console(width=None if Console().is_terminal else 140)
    console.print(table)
    for remark in reading.remarks:
        console.print(Text(remark))
    if reading.unknown:
        console.print(f"{len(reading.unknown)} keys are no settings of the cache; they are kept:")
        for key, where in reading.unknown_at.items():
            console.print(Text(f"  {where}: {key}"))


def as_json(settings: Sequence[Setting], reading: Reading) -> str:
    idle = without_effect(reading.config)
    rows = [
        {
            "key": setting.key,
            "name": setting.name,
            "value": getattr(reading.config, setting.name),
            "default": setting.default,
            "unit": setting.unit,
            "type": setting.kind.__name__,
            "low": setting.low,
            "high": setting.high,
            "choices": list(setting.choices),
            "dynamic": setting.dynamic,
            "from": reading.origins[setting.key],
            "origin": setting.origin,
            "meaning": setting.meaning,
            "derived": setting.derived,
            "interplay": setting.interplay,
            "without_effect": idle.get(setting.key, ""),
        }
        for setting in settings
    ]
    unknown = [
        {"key": key, "value": value, "from": reading.unknown_at[key]}
        for key, value in reading.unknown.items()
    ]
    return json.dumps(
        {
            "settings": rows,
            "cache_size_bytes": reading.config.cache_size_bytes(),
            "unknown": unknown,
            "remarks": list(reading.remarks),
        },
        indent=2,
    )


@click.command()
@click.option(
    "--explain",
    "explained",
    is_flag=True,
    help="Print a table of what each setting means and does.",
)
@click.option(
    "--key", "keys", multiple=True, help="Only this key, or the keys with this in them. Repeatable."
)
@click.option(
    "--file",
    "file",
    type=click.Path(path_type=Path),
    help="Read this broker.conf; without it all values are defaults.",
)
@click.option("--json", "json_", is_flag=True, help="Print JSON instead.")
def config(explained: bool, keys: tuple[str, ...], file: Path | None, json_: bool) -> None:
    """Explain the settings of the cache, or check a broker.conf.

    Without --explain or --json it prints a broker.conf that says every setting, with comments; what
    it read and does not know comes at its end, unchanged.

    \b
    python -m pulsar_ml config --explain
    python -m pulsar_ml config --explain --key watermark --key TTL
    python -m pulsar_ml config --explain --file broker.conf
    python -m pulsar_ml config > broker.conf

    A bad value ends with exit code 2 and one line for each: file, line, value, and what would be
    right.
    """
    reading = read_broker_conf(file) if file is not None else read_mapping({})
    settings = chosen(keys)
    if json_:
        click.echo(as_json(settings, reading))
    elif explained or keys:
        explain(settings, reading)
    else:
        click.echo(reading.to_broker_conf(), nl=False)
