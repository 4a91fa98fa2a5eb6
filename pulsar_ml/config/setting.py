"""What a setting is, how its text is read and what its value may be."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | None

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

PULSAR = "Pulsar 4.1"
PIP_299 = "PIP-299, not released under this name"
PIP_430 = "PIP-430 text, not released"
PIP_430_FIRST = "PIP-430 first revision, not released"
PIP_448 = "PIP-448 branch"
OURS = "pulsar_ml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting: Pulsar's key and what we know of it.

    Attributes:
        key: the name in ``broker.conf``.
        kind: bool, int, float or str.
        default: the value when nothing is given; None stands for a value derived from others.
        unit: the unit of a number; "" for what has none.
        low, high: inclusive bounds of a number.
        choices: the words that a str may be; empty: any.
        dynamic: whether it may change while the cache runs.
        meaning: what it does.
        derived: what None stands for; "" when None is no value.
        interplay: which settings it depends on, overrides or needs.
        origin: the release or proposal that has it.
        other_keys: further keys that are read as this one.
    """

    key: str
    kind: type
    default: Value
    meaning: str
    unit: str = ""
    low: int | float | None = None
    high: int | float | None = None
    choices: tuple[str, ...] = ()
    dynamic: bool = False
    derived: str = ""
    interplay: str = ""
    origin: str = PULSAR
    other_keys: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The attribute of CacheConfig: the key without ``managedLedger``, in Python spelling."""
        return python_name(self.key)

    @property
    def allowed(self) -> str:
        """The values it takes, in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind is bool:
            return "true or false"
        if self.kind is str:
            return "a word"
        what = "a whole number" if self.kind is int else "a number"
        bounds = (
            f"{what} of {self.low} to {self.high}"
            if self.high is not None
            else f"{what}, at least {self.low}"
        )
        return bounds + (f" {self.unit}" if self.unit and self.unit != "fraction" else "")

    def parse(self, text: str) -> Value:
        """The value of a text as ``broker.conf`` has it; ValueError says what would be right.

        An empty text is the default, as in Pulsar, whose own ``broker.conf`` leaves the cache size empty.
        """
        text = text.strip()
        if not text:
            return self.default
        if self.kind is bool:
            if text.lower() not in {"true", "false"}:
                raise self.wrong(text)
            return text.lower() == "true"
        if self.kind is str:
            return self.checked(text)
        try:
            # int() would also take digits of other scripts and underscores.
            if not text.isascii() or "_" in text:
                raise ValueError
            return self.checked(self.kind(text))
        except (ValueError, OverflowError):
            raise self.wrong(text) from None

    def checked(self, value: object) -> Value:
        """The value itself, of the setting's kind and inside its bounds; ValueError otherwise."""
        if value is None:
            if not self.derived:
                raise self.wrong(value)
            return None
        if self.kind is bool or isinstance(value, bool):
            if self.kind is not bool or not isinstance(value, bool):
                raise self.wrong(value)
            return value
        if self.kind is str:
            if (
                not isinstance(value, str)
                or not value
                or (self.choices and value not in self.choices)
            ):
                raise self.wrong(value)
            return value
        return self.number(value)

    def number(self, value: Any) -> int | float:
        try:
            made = operator.index(value) if self.kind is int else float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.wrong(value) from None
        if isinstance(value, str) or not math.isfinite(made):
            raise self.wrong(value)
        if (self.low is not None and made < self.low) or (
            self.high is not None and made > self.high
        ):
            raise self.wrong(value)
        return made

    def wrong(self, value: object) -> ValueError:
        return ValueError(f"{self.key} cannot be {value!r}; it takes {self.allowed}")

    def format(self, value: Value) -> str:
        """The value as ``broker.conf`` spells it."""
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)


def python_name(key: str) -> str:
    """``managedLedgerCacheSizeMB`` -> ``cache_size_mb``."""
    short = key.removeprefix("managedLedger")
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", short).lower()
    return parted.replace("ttlof", "ttl_of")
