"""Records of failures whose subjects are built from source files."""
