"""Functions as tests: a file of C, C++ or Cython whose functions ``test_*`` the engine explores."""

from __future__ import annotations

# The language of a file by the end of its name.
LANGUAGES = {".c": "c", ".cc": "c++", ".cpp": "c++", ".cxx": "c++", ".pyx": "cython"}
PYTHON = ".py"  # its functions start Python threads; nothing is built
