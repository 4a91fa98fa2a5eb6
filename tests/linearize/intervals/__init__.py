"""Monitors compared with the definition on every arrangement of a few calls in time."""
