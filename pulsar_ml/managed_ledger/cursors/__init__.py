"""Cursors of a managed ledger: their positions, stored state and queues of replayed entries."""
