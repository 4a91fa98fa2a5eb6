"""Speed and memory of pulsar_ml: ``python -m benchmarks``."""
