"""A behaviour that each setting changes, observed in objects that a configuration made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pulsar_ml.config import CacheConfig

Observe = Callable[[CacheConfig], object]
NO_EXPECTED_READS = {"cacheEvictionByExpectedReadCount": False}


@dataclass(frozen=True, slots=True)
class Effect:
    """Two values of a setting and what is observed with each, over ``others``."""

    behaviour: str
    observe: Observe
    values: tuple[Any, Any]
    seen: tuple[object, object]
    others: dict[str, Any]


EFFECTS: dict[str, Effect] = {}


def effect(
    key: str, behaviour: str, values: tuple[Any, Any], seen: tuple[object, object], **others: Any
) -> Callable[[Observe], Observe]:
    def add(observe: Observe) -> Observe:
        EFFECTS[key] = Effect(behaviour, observe, values, seen, others)
        return observe

    return add
