"""Independent parts of a history, such as the keys of a map: orders for them, and processes."""
