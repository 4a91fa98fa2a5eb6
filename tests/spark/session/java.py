"""A Java whose Spark starts with a third less processor time: its classes are read from an archive.

Each JVM of a test loads the same some ten thousand classes. The archive is made once for each Java
and each PySpark, and lies below ``build/``.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests import ROOT

FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Uses what sweeps use: tasks of an RDD, and tables.
SESSION = f"""
import os, sys
from pyspark.sql import SparkSession
os.environ["PYSPARK_PYTHON"] = sys.executable  # which has the packages
flags = {FLAGS!r} + " -XX:ArchiveClassesAtExit=" + sys.argv[1]
session = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "768m").config("spark.driver.extraJavaOptions", flags)
    .getOrCreate()
)
assert session.sparkContext.parallelize(range(4), 4).map(str).collect() == list("0123")
assert session.range(4).count() == 4
gateway = session.sparkContext._gateway
session.stop()
gateway.shutdown()
gateway.proc.stdin.close()  # the JVM ends, and writes the archive
gateway.proc.wait()
"""


@functools.cache
def quick_home() -> Path | None:
    """The home of a Java that uses the archive; None where no archive can be made."""
    java = shutil.which("java", path=os.environ.get("JAVA_HOME", "") + "/bin") or shutil.which(
        "java"
    )
    if java is None:
        return None
    java = os.path.realpath(java)
    state = (java, os.stat(java).st_mtime_ns, version("pyspark"), sys.prefix, SESSION)
    folder = ROOT / "build" / "java" / hashlib.sha256(repr(state).encode()).hexdigest()[:12]
    archive, program = folder / "spark.jsa", folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            words = [sys.executable, "-c", SESSION, str(archive)]
            subprocess.run(words, capture_output=True, cwd=folder, check=False)
            own = (
                f"-Xshare:auto -XX:SharedArchiveFile={shlex.quote(str(archive))} "
                if archive.exists()
                else ""
            )
            # A JVM of other classes does without the archive, and says nothing about that.
            own += "-Xlog:disable -Xlog:all=error:stderr " if own else ""
            script = f'#!/bin/sh\nexec {shlex.quote(java)} {own}"$@"\n'
            begun = program.with_name("begun")
            begun.write_text(script)
            begun.chmod(0o755)
            begun.replace(program)
    return folder
