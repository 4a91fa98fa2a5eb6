"""The compiler flags with which the structures are inlined into the loops that call them.

GCC gives up inlining where a function or a file grows by certain shares, and then calls even a
pool's address computation. An operation of the cache is a chain of such small functions.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

FLAGS = (
    "--param=inline-unit-growth=400",
    "--param=max-inline-insns-single=2000",
    "--param=large-function-growth=2000",
    "--param=large-stack-frame-growth=5000",
    "--param=large-unit-insns=100000",
    "--param=early-inlining-insns=100",
)


def inlining_flags(compiler: Sequence[str]) -> list[str]:
    """Return the flags if the compiler is GCC; Clang has no such limits and knows none of them."""
    try:
        done = subprocess.run(
            [*compiler, "-dM", "-E", "-x", "c", "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:
        return []  # The build says that there is no compiler.
    macros = done.stdout
    return list(FLAGS) if "__GNUC__" in macros and "__clang__" not in macros else []
