"""Budgets of time that several tests share, and the counts of tests that run in slices."""
