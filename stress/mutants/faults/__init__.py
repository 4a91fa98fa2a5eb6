"""Automatic mutants of the structures: weaker orders, missing fences, ignored locks."""
