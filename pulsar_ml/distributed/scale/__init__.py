"""The cost of a sweep: measured here, computed for a cluster."""
