"""Imports numpy without the threads of its linear algebra, which are half of its import's time.

A command that checks a small file imports this module first, and does no linear algebra. Processes
that it starts do not inherit the setting.
"""

from __future__ import annotations

import os

VARIABLE = "OPENBLAS_NUM_THREADS"

if VARIABLE in os.environ:
    import numpy as numpy
else:
    os.environ[VARIABLE] = "1"
    try:
        import numpy as numpy
    finally:
        del os.environ[VARIABLE]
