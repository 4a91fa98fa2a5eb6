"""Scratch directories in the system's temporary directory, which do not outlive a kill for long.

Each holds a locked file. The kernel gives the lock back when its process ends, however it ends; the
next start of any command that makes such a directory removes those whose lock is free.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "pulsar_ml-"
OWNER = ".owner"
PURPOSES = ("spark", "pack", "scale")


@contextmanager
def scratch_directory(purpose: str) -> Iterator[Path]:
    """Yield a new directory, which is removed at the end; removes abandoned ones first."""
    remove_abandoned()
    directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{purpose}-"))
    # Children do not inherit the descriptor: a JVM that is left alone keeps no lock.
    owner = os.open(directory / OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        os.close(owner)


def remove_abandoned() -> None:
    """Remove this user's scratch directories whose processes have ended."""
    for purpose in PURPOSES:
        for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}{purpose}-*"):
            with suppress(OSError):
                if directory.lstat().st_uid == os.getuid() and is_abandoned(directory):
                    shutil.rmtree(directory, ignore_errors=True)


def is_abandoned(directory: Path) -> bool:
    """Return True for a scratch directory that no process holds; links are none."""
    if directory.is_symlink():
        return False
    try:
        owner = os.open(directory / OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False  # somebody else's, or just being made
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(owner)
    return True
