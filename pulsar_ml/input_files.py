"""Reading a file that somebody else may have made: a plain file of bounded size that is text.

Also the exception about a place that the system refuses to write.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.terminal.printable import printable

MOST_BYTES = 64 << 20
# Refusals that another argument does not cure by itself; a command ends with exit code 4.
OF_THE_MACHINE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EMFILE),
}


def refused(error: OSError, path: Path, deed: str) -> OSError | UsageError:
    """The exception about a place that cannot be written: OSError when the machine is to blame."""
    found = error.errno or next(
        (number for number in OF_THE_MACHINE if f"errno {number}]" in str(error)), 0
    )
    if found in OF_THE_MACHINE:
        return OSError(found, os.strerror(found), str(path))
    return UsageError(f"cannot {deed} {path}: {error.strerror or error}")


def bounded_text(path: Path, what: str, *, most: int = MOST_BYTES) -> str:
    """The text of the file at ``path``, of at most ``most`` bytes; ``what`` says what it should be.

    Raises UsageError when it cannot be read, BadRecordError when it is no such text. A pipe or a
    device is refused without waiting for it.
    """
    try:
        with open(path, "rb", opener=plain) as file:
            content = file.read(most + 1)
    except OSError as error:
        raise UsageError(f"{what} {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a name with a zero byte
        raise UsageError(f"{what} {str(path)!r} cannot be read: {error}") from None
    if len(content) > most:
        raise BadRecordError(f"{path} is larger than {most >> 20} MiB, so it is not {what}")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadRecordError(f"{path} is not text, so it is damaged or not {what}") from None


def utf8_path(path: Path) -> Path:
    """A path of code under test, as it is; UsageError when its bytes are not UTF-8."""
    try:
        os.fsencode(path).decode()
    except UnicodeError:
        raise UsageError(
            f"{printable(str(path))} is a path that is not UTF-8, and reports name files in UTF-8: "
            "rename the file or its folder, or move the code under test to another one"
        ) from None
    return path


def plain(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is no plain file")
    return handle


def one_line(error: BaseException, most: int = 200) -> str:
    """An error's text, short enough for a sentence: others' messages may be pages or hold the
    input.
    """
    text = first_line(str(error), most)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def first_line(text: str, most: int = 200) -> str:
    """The first line of a text, short and without control characters."""
    lines = text.split("\n")
    return printable(f"{lines[0]:.{most}}")
