"""Sentences on the cause of a failure, each from the steps of the failing execution."""
