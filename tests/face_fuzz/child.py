"""A process of the fuzzer: makes the calls of one seed and prints their counts as JSON."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import signal
import sys
import sysconfig
import threading

from tests.face_fuzz.fuzzer import fuzz
from tests.face_fuzz.pairs import Pairs, Scene
from tests.face_fuzz.values import SENSIBLE

MEMORY = 4 << 30  # bytes of address space: larger requests fail
# The shadow memory of a sanitizer takes terabytes of addresses.
SANITIZED = "-fsanitize=" in str(sysconfig.get_config_var("CFLAGS"))


class Planted:
    """A mistake for the fuzzer to find: see test_face_fuzz.py."""

    kind = ""

    def __new__(cls, *arguments: object, **named: object) -> Planted:
        if cls.kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if cls.kind == "hang":
            threading.Event().wait()
        if cls.kind == "overflow":
            raise OverflowError("int too big to convert")
        raise TypeError("planted")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, required=True)
    options.add_argument("--calls", type=int, required=True)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--pairs", choices=["", *Scene.MAKERS], default="")
    options.add_argument("--rounds", type=int, default=1, help="objects of a pair")
    options.add_argument("--only", default="", help="a member: its pair with itself")
    options.add_argument(
        "--planted", choices=["", "crash", "hang", "overflow", "names"], default=""
    )
    arguments = options.parse_args()
    faulthandler.enable()
    # The parent sends it to a process that hangs.
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    Planted.kind = arguments.planted
    extra: list[type] = [Planted] if arguments.planted else []
    if arguments.planted == "names":
        for name in ("position", "positions"):
            del SENSIBLE[name]
    if arguments.pairs:
        counts = Pairs(
            arguments.pairs, arguments.seed, arguments.calls, arguments.rounds, arguments.only
        ).run()
        print(json.dumps(counts), flush=True)
        return 0
    print(json.dumps(fuzz(arguments.seed, arguments.calls, arguments.threads, extra)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
