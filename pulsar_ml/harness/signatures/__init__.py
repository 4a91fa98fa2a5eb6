"""Subjects from signatures: glue code for the methods of a structure, generated and built."""
