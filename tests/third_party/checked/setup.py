"""A project of a stranger: two extensions, built as usual by ``python setup.py build_ext
--inplace``.
"""

from __future__ import annotations

from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

import pulsar_ml

ABOVE = str(Path(pulsar_ml.__file__).parents[1])
EXTENSIONS = [
    Extension(
        "ring", ["ring.pyx"], include_dirs=[ABOVE, "."], language="c++", extra_compile_args=["-O2"]
    ),
    Extension("measurement", ["measurement.pyx"], include_dirs=[ABOVE], language="c++"),
]


def built(extensions: list[Extension], **options: object) -> list[Extension]:
    modules: list[Extension] = cythonize(  # type: ignore[no-untyped-call]
        extensions, include_path=[ABOVE], language_level=3, **options
    )
    return modules


if __name__ == "__main__":
    setup(name="stranger-structures", version="1.0", ext_modules=built(EXTENSIONS))
