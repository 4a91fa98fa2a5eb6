"""Storages of ledgers: the interface, one on disk, one in memory and one that injects faults."""
