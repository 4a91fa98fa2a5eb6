"""Reports about a run, read from its directory alone: an HTML page, and formats for other tools."""
