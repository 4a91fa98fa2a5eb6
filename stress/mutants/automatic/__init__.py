"""Automatic mutants of the native core: small mistakes in each line, made from the sources."""
