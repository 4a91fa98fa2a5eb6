"""What is about this product's suites only: mutants, the kill table, the page of invariants."""
