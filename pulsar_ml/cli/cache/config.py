"""``pulsar-ml config``: the settings of the cache, explained or checked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
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
from pulsar_ml.terminal.console import new_console
from pulsar_ml.terminal.printer import echo

if TYPE_CHECKING:
    from rich.text import Text


def chosen(keys: Sequence[str]) -> list[Setting]:
    """The settings of these keys, or all. A part of a key stands for every key that contains it."""
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
    """The value that holds with its unit, marked when it is derived from other settings."""
    value = reading.config.effective(setting.key)
    if value is None:
        return "no limit (derived)"
    unit = f" {setting.unit}" if setting.unit and setting.unit != "fraction" else ""
    derived = " (derived)" if getattr(reading.config, setting.name) != value else ""
    return setting.format(value) + unit + derived


def description(setting: Setting, idle: str | None) -> Text:
    from rich.text import Text

    text = Text(setting.meaning)
    text.append(f"\nTakes {setting.allowed}.")
    if setting.derived:
        text.append(f" Unset: {setting.derived}.")
    text.append(" May change while running." if setting.dynamic else " Set at start.")
    if setting.interplay:
        text.append(f"\n{setting.interplay}", style="dim")
    if setting.origin != PULSAR:
        text.append(f"\nFrom: {setting.origin}.", style="dim")
    if idle is not None:
        text.append(f"\nWithout effect: {idle}.", style="yellow")
    return text


def explain(settings: Sequence[Setting], reading: Reading) -> None:
    """Prints a paragraph for each setting: key, value and default, then the explanation."""
    from rich.padding import Padding
    from rich.text import Text

    console = new_console()
    idle = without_effect(reading.config)
    for setting in settings:
        default = setting.format(setting.default) or "derived"
        origin = Path(reading.origins[setting.key]).name
        facts = f"default {default}" if origin == "default" else f"default {default}; {origin}"
        console.print(Text(setting.key, style="bold"), soft_wrap=True)
        console.print(f"  = {shown(setting, reading)} ({facts})", soft_wrap=True, markup=False)
        console.print(Padding(description(setting, idle.get(setting.key)), (0, 0, 1, 4)))
    for remark in reading.remarks:
        console.print(Text(remark))
    if reading.unknown:
        console.print(f"{len(reading.unknown)} keys are no settings of the cache; they are kept:")
        for key, where in reading.unknown_at.items():
            console.print(Text(f"  {where}: {key}"))


def json_text(settings: Sequence[Setting], reading: Reading) -> str:
    idle = without_effect(reading.config)
    rows = [
        {
            "key": setting.key,
            "name": setting.name,
            "value": getattr(reading.config, setting.name),
            "effective": reading.config.effective(setting.key),
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


@new_command(
    "config",
    examples=(
        "config --explain",
        "config --explain --key watermark --key TTL",
        "config --explain --broker-conf broker.conf",
        "config > broker.conf",
    ),
)
@option("--explain", "explained", is_flag=True, help="Print a table that explains each setting.")
@option(
    "--key",
    "keys",
    multiple=True,
    help="Only this key, or all keys that contain it. Repeatable.",
)
@shared.broker_conf
@shared.as_json
def command(
    explained: bool, keys: tuple[str, ...], broker_conf: Path | None, as_json: bool
) -> None:
    """Explain the settings of the cache, or check a broker.conf.

    Without --explain or --json the command prints a broker.conf with every setting and comments;
    unknown settings of the file that was read come last, unchanged.

    A wrong value ends with exit code 2 and one line: file, line, value, and the allowed values.
    """
    reading = read_broker_conf(broker_conf) if broker_conf is not None else read_mapping({})
    settings = chosen(keys)
    if as_json:
        echo(json_text(settings, reading))
    elif explained or keys:
        explain(settings, reading)
    else:
        echo(reading.to_broker_conf(), nl=False)
