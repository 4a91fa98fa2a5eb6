"""Reports about a run: read from its directory alone, as a page for people and as files for machines."""
