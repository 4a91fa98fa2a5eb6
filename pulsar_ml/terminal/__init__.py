"""The terminal: printing, command lines, progress, tables that fit, and a graceful stop."""
