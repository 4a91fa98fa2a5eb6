"""pytest runs the functions of native files: collection, budgets, reports and interrupts."""
