"""Known bugs as mutants of the core, built apart from the product to prove that the suites see them."""
