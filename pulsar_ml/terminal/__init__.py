"""The terminal: commands' entry, progress, tables that fit, and a graceful stop."""
