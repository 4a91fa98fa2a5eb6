"""Settings of the cache under Pulsar's names, from keywords, a mapping or a ``broker.conf``."""

from __future__ import annotations

from pulsar_ml.config.cache_config import CacheConfig, Change, usable_memory, without_effect
from pulsar_ml.config.reading import (
    Reading,
    parse_broker_conf,
    read_broker_conf,
    read_mapping,
    to_broker_conf,
)
from pulsar_ml.config.setting import Setting, Value
from pulsar_ml.config.settings import BY_ANY_KEY, BY_KEY, SETTINGS

__all__ = [
    "BY_ANY_KEY",
    "BY_KEY",
    "SETTINGS",
    "CacheConfig",
    "Change",
    "Reading",
    "Setting",
    "Value",
    "parse_broker_conf",
    "read_broker_conf",
    "read_mapping",
    "to_broker_conf",
    "usable_memory",
    "without_effect",
]
