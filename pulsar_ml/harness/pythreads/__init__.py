"""Python threads under the engine: a Python function is a test, and every schedule is a seed."""
