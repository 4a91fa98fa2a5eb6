"""The suite of the acknowledgement state: acknowledgements, stored states, pauses of dispatch."""

from __future__ import annotations

from pulsar_ml.campaign.trial.suite import ControlledSize, Suite
from pulsar_ml.suites.invariants import named

SUITE = Suite(
    name="ack_state",
    subject="ack_state",
    model="pulsar_ml.specs.ack_state",
    summary=(
        "Acknowledgements of a cursor, what of them is stored within the limits, and "
        "pauses of dispatch."
    ),
    settings={"max_bytes": (1, 200), "max_ranges": (0, 4), "max_batches": (0, 3), "max_store_ranges": (0, 3)},
    threads=4,
    operations=4000,
    # Acknowledgements and the dispatcher meet more often than in long programs.
    controlled=ControlledSize(
        sources=("ack_entry", "ack_index"),
        operations=(3, 6),
        left_out=("apart",),
        mix={
            "ack_entry": 8, "ack_index": 6, "ack_up_to": 2, "is_acked": 2, "end_ledger": 2, "dispatch": 8,
            "store": 1, "restore": 1, "set_metadata": 2, "set_pauses": 3, "look": 1, "mark": 1, "size": 1,
        },
    ),
    invariants=named("I99 AC-1 AC-2 AR-1 AR-2 AR-3 AS-1"),
)  # fmt: skip
