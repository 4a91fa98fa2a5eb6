"""Spark: the runner of sweeps on executors, and everything else that imports PySpark."""
