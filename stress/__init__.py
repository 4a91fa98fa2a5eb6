"""Tools for this product's own suites: mutants, the kill table, the page of invariants."""
