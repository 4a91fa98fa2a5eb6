"""One execution on a page: its sentence, its drawing, and the order that it lacks."""
