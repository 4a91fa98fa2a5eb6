"""The checked twins of the extensions of setup.py, which stays as it is.

Build them into a tree of their own: ``python setup_checked.py build --build-base checked``.
"""

from __future__ import annotations

import runpy

from setuptools import setup

from pulsar_ml.harness import checked_extension

project = runpy.run_path("setup.py")

setup(
    name="stranger-structures-checked",
    version="1.0",
    # Line numbers of the .pyx files in the reports; generated files of their own.
    ext_modules=project["built"](
        [checked_extension(extension) for extension in project["EXTENSIONS"]],
        emit_linenums=True,
        build_dir="checked/c",
    ),
)
