"""Python threads under the thread sanitizer, on an interpreter that is built for it."""
