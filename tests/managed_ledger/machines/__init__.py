"""State machines of parts of the managed ledger."""
