"""The managed ledger under the engine: every schedule of a few Python threads is an execution."""
