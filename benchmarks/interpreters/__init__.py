"""Benchmarks that run on other interpreters of this machine too, beside the one that is asked."""
