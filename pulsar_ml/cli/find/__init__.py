"""Commands that look for bugs."""
