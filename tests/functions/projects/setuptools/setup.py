from __future__ import annotations

from setuptools import Extension, setup

setup(name="counter", version="1.0", ext_modules=[Extension("counter", ["counter.c"])])
