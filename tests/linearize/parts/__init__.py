"""Tests of parts that are checked side by side."""
