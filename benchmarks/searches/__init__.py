"""Rows of `python -m benchmarks search`."""
