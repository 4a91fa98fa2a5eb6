"""Readers of settings from mappings and files, which record the origin of each value."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_ml.config.cache_config import CacheConfig, conflicts
from pulsar_ml.config.properties import Property, format_comment, format_property, parse_properties
from pulsar_ml.config.setting import Value
from pulsar_ml.config.settings import BY_ANY_KEY, SETTINGS
from pulsar_ml.errors import ConfigError

DEFAULT = "default"
MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration, the origins of its values, and the keys that are not settings of the cache.

    Attributes:
        config: the settings.
        origins: key -> origin of its value: ``"default"``, ``"mapping"`` or ``"broker.conf:12"``.
        unknown: other keys with their text, in order. A ``broker.conf`` has hundreds of these;
            :meth:`to_broker_conf` writes them, too.
        unknown_at: other key -> its origin.
        remarks: messages about repeated keys and alternative keys.
    """

    config: CacheConfig
    origins: Mapping[str, str]
    unknown: Mapping[str, str] = field(default_factory=dict)
    unknown_at: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def to_broker_conf(self, *, comments: bool = True) -> str:
        """The text of a broker.conf; reading it returns the same settings and other keys."""
        return to_broker_conf(self.config, unknown=self.unknown, comments=comments)


def read_mapping(mapping: Mapping[str, Value]) -> Reading:
    """Reads settings by Pulsar's keys; values are texts like in ``broker.conf``, or typed.

    Raises ConfigError with every bad value and the allowed ones.
    """
    return gather([(key, value, "mapping") for key, value in mapping.items()])


def read_broker_conf(path: str | os.PathLike[str]) -> Reading:
    """Reads a file of Java properties. Raises ConfigError also for an unreadable file."""
    return parse_broker_conf(plain_text(path), file=str(path))


def plain_text(path: str | os.PathLike[str]) -> str:
    """The text of a regular file of at most ``MAX_FILE_BYTES``.

    Raises ConfigError for other files; it never waits for a pipe.
    """
    try:
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path}: cannot be read: not a regular file")
            content = file.read(MAX_FILE_BYTES + 1)
    except ConfigError:  # a ValueError, too
        raise
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name with a zero byte
        raise ConfigError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(
            f"{path}: is larger than {MAX_FILE_BYTES >> 20} MiB, the limit for a file of settings"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start} is not UTF-8; save it as UTF-8 or use \\u escapes"
        ) from None


def parse_broker_conf(text: str, *, file: str = "broker.conf") -> Reading:
    """Parses the text of a ``broker.conf``; ``file`` is its name in messages."""
    properties = parse_properties(text, file)
    return gather(
        [(item.key, item.value, f"{file}:{item.line}") for item in properties],
        repeated(properties, file),
    )


def repeated(properties: list[Property], file: str) -> tuple[str, ...]:
    """A remark for each repeated key; its last value counts."""
    seen: dict[str, list[int]] = {}
    for item in properties:
        seen.setdefault(item.key, []).append(item.line)
    return tuple(
        f"{file}:{lines[-1]}: {key} was already set on line {', '.join(map(str, lines[:-1]))}; "
        "this one counts"
        for key, lines in seen.items()
        if len(lines) > 1
    )


def gather(items: list[tuple[str, Value, str]], remarks: tuple[str, ...] = ()) -> Reading:
    """Builds a configuration from (key, value, origin); the last value of a key counts."""
    last = {key: (value, where) for key, value, where in items}
    found: dict[str, Value] = {}
    unknown: dict[str, str] = {}
    unknown_at: dict[str, str] = {}
    origins = {setting.key: DEFAULT for setting in SETTINGS}
    errors: list[str] = []
    renamed: list[str] = []
    # The main key of a setting comes after its alternative keys, so that the main key wins.
    for key, (value, where) in sorted(last.items(), key=lambda item: is_main_key(item[0])):
        setting = BY_ANY_KEY.get(key)
        if setting is None:
            unknown[key] = "" if value is None else str(value)
            unknown_at[key] = where
            continue
        if key != setting.key:
            renamed.append(f"{where}: {key} is read as {setting.key}")
        try:
            found[setting.name] = (
                setting.parse(value) if isinstance(value, str) else setting.checked(value)
            )
        except ValueError as error:
            errors.append(f"{where}: {error}")
        if not isinstance(value, str) or value.strip():
            origins[setting.key] = where
    if not errors:
        values = {setting.name: setting.default for setting in SETTINGS} | found
        errors = [f"{origins[key]}: {message}" for key, message in conflicts(values)]
    if errors:
        raise ConfigError("\n".join(errors))
    config = CacheConfig(**found)  # type: ignore[arg-type]
    return Reading(config, origins, unknown, unknown_at, (*remarks, *renamed))


def is_main_key(key: str) -> bool:
    setting = BY_ANY_KEY.get(key)
    return setting is not None and setting.key == key


def to_broker_conf(
    config: CacheConfig, *, unknown: Mapping[str, str] | None = None, comments: bool = True
) -> str:
    """The text of a ``broker.conf`` with all settings; reading it returns the same settings."""
    lines: list[str] = []
    for setting in SETTINGS:
        if comments:
            lines += ["", format_comment(f" {setting.meaning}")]
            if setting.interplay:
                lines.append(format_comment(f" {setting.interplay}"))
        lines.append(format_property(setting.key, setting.format(getattr(config, setting.name))))
    if unknown:
        lines += (
            ["", format_comment(" Keys that are not settings of the cache.")] if comments else []
        )
        lines += [format_property(key, value) for key, value in unknown.items()]
    return "\n".join(lines).lstrip("\n") + "\n"
