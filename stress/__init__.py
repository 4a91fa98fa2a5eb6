"""Mutants, the kill table and the page of invariants of this product."""
