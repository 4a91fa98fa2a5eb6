"""Tests of packages from PyPI and of modules of the standard library, with known and new bugs."""
