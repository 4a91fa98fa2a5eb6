"""Digests of the sources on which results depend."""
