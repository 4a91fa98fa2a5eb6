"""Names of memory locations for traces: from the code under test, or from debug information."""
