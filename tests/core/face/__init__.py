"""Misuse of the Python face: an error with a name, and no crash, hang or lasting damage."""
