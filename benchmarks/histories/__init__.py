"""Benchmarks of checks of histories that are commands of their own."""
