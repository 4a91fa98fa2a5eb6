"""The acknowledgements of a simulated subscription, in the product's acknowledgement state."""

from __future__ import annotations

from pulsar_ml import AckState
from pulsar_ml.simulate.cache import CachedLedger


class Acknowledgements:
    """Entries that a subscription acknowledged one by one, behind its mark-delete position."""

    __slots__ = ("_cached", "_counters", "_state")

    def __init__(self, cached: CachedLedger, position: int) -> None:
        config = cached.broker.settings.config
        self._cached = cached
        self._counters = cached.broker.counters
        self._state = AckState(
            (cached.number, position - 1),
            max_bytes=config.ack_state_bytes_to_persist,
            max_ranges=config.max_unacked_ranges_to_persist,
            pause_dispatch=config.dispatcher_pause_on_ack_state_persistent_enabled,
        )

    @property
    def may_dispatch(self) -> bool:
        """False while the state is too large to be stored and the settings pause dispatch."""
        return self._state.may_dispatch()

    def acknowledge(self, entry: int) -> int:
        """Acknowledges an entry; returns the first entry that is not acknowledged."""
        self._state.acknowledge((self._cached.number, entry))
        size = self._state.size
        self._counters.max_ack_state_bytes = max(self._counters.max_ack_state_bytes, size)
        return self._state.mark_delete_position.entry_id + 1
