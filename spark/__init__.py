"""Distribution: spreads the trials of a campaign over Spark executors. Run ``python -m spark.sweep``."""
