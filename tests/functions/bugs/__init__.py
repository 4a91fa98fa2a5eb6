"""The twenty small programs of tests/functions/programs, each buggy and mended."""
