"""A fuzzer over the Python face of the cache's core: ``python -m tests.face_fuzz``."""
