"""Stress suites: seeded random programs on real threads. ``python -m stress --help``."""
