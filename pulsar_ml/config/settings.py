"""All settings of the cache, in the order of the printed table."""

from __future__ import annotations

from pulsar_ml.config.broker_settings import ACK_STATE, DELAYED_DELIVERY, RECEIVE_BUFFERS
from pulsar_ml.config.cache_settings import BACKLOG, EVICTION, READS, SIZE
from pulsar_ml.config.setting import Setting

SETTINGS: tuple[Setting, ...] = (
    *SIZE,
    *EVICTION,
    *BACKLOG,
    *READS,
    *RECEIVE_BUFFERS,
    *ACK_STATE,
    *DELAYED_DELIVERY,
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
# BY_KEY with the alternative keys.
BY_ANY_KEY = BY_KEY | {other: setting for setting in SETTINGS for other in setting.other_keys}
