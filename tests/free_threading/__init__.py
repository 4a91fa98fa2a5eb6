"""The package on interpreters without a GIL, and what of that can be tested with one."""
