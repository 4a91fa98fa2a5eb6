"""Limits of a check that hold wherever it is: in a model, in a file, in a monitor."""
