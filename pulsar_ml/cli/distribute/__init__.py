"""Commands about Spark and about results of many runs."""
