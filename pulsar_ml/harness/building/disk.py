"""Recognizes, in the output of a build, that the disk took no more."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

# The words of the system, at the end of a line or before a file's name: a line of source that a
# compiler quotes has more behind them. The first name is that of the program, or of its input.
REASONS = {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)}
REFUSED = re.compile(
    rf"^(?:[^:\s]+: )?(?:(?P<before>.*): )?(?:\[Errno \d+\] )?['\"]?(?P<reason>"
    rf"{'|'.join(map(re.escape, REASONS))})['\"]?(?:: (?P<file>'.*'))?$",
    re.MULTILINE,
)
FILE = re.compile(r"(?<![\w.])(/[^\s:'\"]+)")


def full_disk(output: str, folder: Path) -> OSError | None:
    """Return the error with its place when a program of a build in ``folder`` met a full disk.

    The place is the file that the program named, which may be one in the temporary directory.
    """
    found = REFUSED.search(output)
    if found is None:
        return None
    names = FILE.findall(found["file"] or found["before"] or "")
    return OSError(REASONS[found["reason"]], found["reason"], names[-1] if names else str(folder))
