"""Commands that explain what was found."""
