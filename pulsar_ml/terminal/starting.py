"""Begins the command ``pulsar-ml``: a signal ends it at once while it imports the package, and its
hash seed is a fixed one.

The package imports this module first, before the native one, which takes longest.
"""

from __future__ import annotations

import os
import sys

from pulsar_ml.terminal.hash_seed import begin_command

NAME = "pulsar-ml"
MODULE = ("pulsar_ml", "-mpulsar_ml")


def is_command(arguments: list[str], original: list[str]) -> bool:
    """Return True in the process of ``python -m pulsar_ml`` or ``pulsar-ml``, false elsewhere.

    ``arguments`` is sys.argv, whose first word is ``-m`` until Python has found the module to run;
    ``original`` is sys.orig_argv.
    """
    if arguments[:1] == ["-m"]:
        return any(word in MODULE for word in original)
    return bool(arguments) and os.path.basename(arguments[0]) == NAME


if is_command(getattr(sys, "argv", []), sys.orig_argv):
    begin_command()  # before all other imports, because the new process imports them again
    from pulsar_ml.terminal.signals import leave_at_once

    leave_at_once()
