"""Setting: the description of one setting, with the parser and the checks of its values."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | None

MAX_INT = 2**31 - 1
MAX_LONG = 2**63 - 1

PULSAR = "Pulsar 4.1"
PIP_299 = "PIP-299, not released under this name"
PIP_430 = "PIP-430 text, not released"
PIP_430_FIRST = "PIP-430 first revision, not released"
PIP_448 = "PIP-448 branch"
OURS = "pulsar_ml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The description of one setting.

    Attributes:
        key: Pulsar's name in ``broker.conf``.
        kind: bool, int, float or str.
        default: the default value; None stands for a value derived from other settings.
        unit: the unit of a number; "" for other kinds.
        low, high: inclusive bounds of a number.
        choices: the allowed words of a str; empty: any word.
        dynamic: true when the value may change while the cache runs.
        meaning: the effect of the setting, in a sentence.
        derived: a description of the derived value; "" when None is not allowed.
        interplay: the settings that this one depends on, overrides or needs.
        origin: the release or proposal that introduced the setting.
        other_keys: alternative keys.
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
        """The CacheConfig attribute: the key without ``managedLedger``, in snake case."""
        return python_name(self.key)

    @property
    def allowed(self) -> str:
        """A description of the allowed values."""
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
        """Parses a value of ``broker.conf``; a ValueError names the allowed values.

        An empty text means the default, like in Pulsar, whose own ``broker.conf`` leaves the cache
        size empty.
        """
        text = text.strip()
        if not text:
            return self.default
        if self.kind is bool:
            if text.lower() not in {"true", "false"}:
                raise self.refusal(text)
            return text.lower() == "true"
        if self.kind is str:
            return self.checked(text)
        try:
            # int() would also accept underscores and the digits of other scripts.
            if not text.isascii() or "_" in text:
                raise ValueError
            return self.checked(self.kind(text))
        except (ValueError, OverflowError):
            raise self.refusal(text) from None

    def checked(self, value: object) -> Value:
        """Returns the value, converted to the setting's kind; ValueError when it is not allowed."""
        if value is None:
            if not self.derived:
                raise self.refusal(value)
            return None
        if self.kind is bool or isinstance(value, bool):
            if self.kind is not bool or not isinstance(value, bool):
                raise self.refusal(value)
            return value
        if self.kind is str:
            if (
                not isinstance(value, str)
                or not value
                or (self.choices and value not in self.choices)
            ):
                raise self.refusal(value)
            return value
        return self.number(value)

    def number(self, value: Any) -> int | float:
        try:
            number = operator.index(value) if self.kind is int else float(value)
        except (TypeError, ValueError, OverflowError):
            raise self.refusal(value) from None
        if isinstance(value, str) or not math.isfinite(number):
            raise self.refusal(value)
        if (self.low is not None and number < self.low) or (
            self.high is not None and number > self.high
        ):
            raise self.refusal(value)
        return number

    def refusal(self, value: object) -> ValueError:
        return ValueError(f"{self.key} cannot be {value!r:.200}; it takes {self.allowed}")

    def format(self, value: Value) -> str:
        """The text of a value in ``broker.conf``."""
        if value is None:
            return ""
        return str(value).lower() if isinstance(value, bool) else str(value)


def python_name(key: str) -> str:
    """``managedLedgerCacheSizeMB`` -> ``cache_size_mb``."""
    short = key.removeprefix("managedLedger")
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", short).lower()
    return parted.replace("ttlof", "ttl_of")
