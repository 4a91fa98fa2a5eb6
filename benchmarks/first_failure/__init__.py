"""Small programs with a mistake, each written for pulsar-ml, Loom and Shuttle."""
