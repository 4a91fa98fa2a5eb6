"""A project of a stranger: its one extension cimports the installed pulsar_ml and nothing of its
sources.
"""

from __future__ import annotations

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

import pulsar_ml

# The folder above the package serves for both: .pxd files and the header.
ABOVE = str(Path(pulsar_ml.__file__).parents[1])

setup(
    name="stranger",
    version="1.0",
    ext_modules=cythonize(  # type: ignore[no-untyped-call]
        [Extension("stranger", ["stranger.pyx"], include_dirs=[ABOVE])],
        include_path=[ABOVE],
        compiler_directives={"language_level": "3"},
    ),
)
