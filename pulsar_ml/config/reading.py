"""Settings from keywords, mappings and files, with where each came from."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_ml.config.cache_config import CacheConfig, disagreements
from pulsar_ml.config.properties import Property, format_comment, format_property, parse_properties
from pulsar_ml.config.setting import Value
from pulsar_ml.config.settings import BY_ANY_KEY, SETTINGS
from pulsar_ml.errors import ConfigError

DEFAULT = "default"
MOST_BYTES = 4 << 20  # of a file of settings


@dataclass(frozen=True, slots=True)
class Reading:
    """A configuration and what was found beside it.

    Attributes:
        config: the settings.
        origins: key -> where its value came from: ``"default"``, ``"mapping"`` or ``"broker.conf:12"``.
        unknown: keys that are no setting of the cache, with their text, in order of appearance. A
            ``broker.conf`` has hundreds of them; they are kept for :meth:`to_broker_conf`.
        unknown_at: unknown key -> where it stands.
        remarks: repeated keys, and keys under another name, in words.
    """

    config: CacheConfig
    origins: Mapping[str, str]
    unknown: Mapping[str, str] = field(default_factory=dict)
    unknown_at: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def to_broker_conf(self, *, comments: bool = True) -> str:
        """The text of a file that reads back as this, unknown keys included."""
        return to_broker_conf(self.config, unknown=self.unknown, comments=comments)


def read_mapping(mapping: Mapping[str, Value]) -> Reading:
    """Settings by Pulsar's keys. Values are texts as in ``broker.conf`` or of the setting's own type.

    Raises ConfigError with every bad value and what would be right.
    """
    return gather([(key, value, "mapping") for key, value in mapping.items()])


def read_broker_conf(path: str | os.PathLike[str]) -> Reading:
    """Settings from a file of Java properties. ConfigError also when it cannot be read."""
    return parse_broker_conf(plain_text(path), file=str(path))


def plain_text(path: str | os.PathLike[str]) -> str:
    """The text of a plain file of settings, of at most ``MOST_BYTES``. ConfigError, without waiting for a
    pipe, when it is none.
    """
    try:
        with open(
            path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)
        ) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ConfigError(f"{path}: cannot be read: it is no plain file")
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name with a zero byte
        raise ConfigError(f"{str(path)!r}: cannot be read: {error}") from None
    if len(content) > MOST_BYTES:
        raise ConfigError(
            f"{path}: is larger than {MOST_BYTES >> 20} MiB, so it is no file of settings"
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start} is not UTF-8; save it as UTF-8 or use \\u escapes"
        ) from None


def parse_broker_conf(text: str, *, file: str = "broker.conf") -> Reading:
    """The same from a text; ``file`` is its name in messages."""
    properties = parse_properties(text, file)
    return gather(
        [(item.key, item.value, f"{file}:{item.line}") for item in properties],
        repeated(properties, file),
    )


def repeated(properties: list[Property], file: str) -> tuple[str, ...]:
    """A remark for each key that stands in a file more than once; the last one counts."""
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
    """One configuration of keys, values and where they stand; of the same key the last."""
    last = {key: (value, where) for key, value, where in items}
    found: dict[str, Value] = {}
    unknown: dict[str, str] = {}
    unknown_at: dict[str, str] = {}
    origins = {setting.key: DEFAULT for setting in SETTINGS}
    wrong: list[str] = []
    more: list[str] = []
    # A setting's own key comes after its other keys, so that it counts.
    for key, (value, where) in sorted(last.items(), key=lambda item: is_own(item[0])):
        setting = BY_ANY_KEY.get(key)
        if setting is None:
            unknown[key] = "" if value is None else str(value)
            unknown_at[key] = where
            continue
        if key != setting.key:
            more.append(f"{where}: {key} is read as {setting.key}")
        try:
            found[setting.name] = (
                setting.parse(value) if isinstance(value, str) else setting.checked(value)
            )
        except ValueError as error:
            wrong.append(f"{where}: {error}")
        if not isinstance(value, str) or value.strip():
            origins[setting.key] = where
    if not wrong:
        values = {setting.name: setting.default for setting in SETTINGS} | found
        wrong = [f"{origins[key]}: {message}" for key, message in disagreements(values)]
    if wrong:
        raise ConfigError("\n".join(wrong))
    config = CacheConfig(**found)  # type: ignore[arg-type]
    return Reading(config, origins, unknown, unknown_at, (*remarks, *more))


def is_own(key: str) -> bool:
    setting = BY_ANY_KEY.get(key)
    return setting is not None and setting.key == key


def to_broker_conf(
    config: CacheConfig, *, unknown: Mapping[str, str] | None = None, comments: bool = True
) -> str:
    """The text of a ``broker.conf`` with all settings, which reads back as the same configuration."""
    lines: list[str] = []
    for setting in SETTINGS:
        if comments:
            lines += ["", format_comment(f" {setting.meaning}")]
            if setting.interplay:
                lines.append(format_comment(f" {setting.interplay}"))
        lines.append(format_property(setting.key, setting.format(getattr(config, setting.name))))
    if unknown:
        lines += ["", format_comment(" Not settings of the cache.")] if comments else []
        lines += [format_property(key, value) for key, value in unknown.items()]
    return "\n".join(lines).lstrip("\n") + "\n"
