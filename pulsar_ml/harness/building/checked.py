"""Checked builds: the same sources, compiled so that every access to memory calls the engine.

They use the compiler's thread-sanitizer instrumentation without its runtime: the flag is passed
when compiling, and not when linking. The linker redirects calls of libc that would escape the
engine. The sources stay unchanged.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# -fno-builtin-*: expanded inline, these functions would write memory without a call. Frame pointers
# and debug information serve the reports.
COMPILE_FLAGS = (
    "-fsanitize=thread",
    # addr2line up to binutils 2.40 confuses the first two files of DWARF 5: .c instead of .pyx.
    "-gdwarf-4",
    "-O2",
    "-fno-omit-frame-pointer",
    "-fno-builtin-memcpy",
    "-fno-builtin-memmove",
    "-fno-builtin-memset",
    "-fno-plt",
    "-U_FORTIFY_SOURCE",
    "-Wno-unknown-warning-option",  # for Clang, which has no -Wtsan
    "-Wno-tsan",
)

WRAPPED = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    *("_Znwm", "_Znam", "_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"),
    *("memcpy", "memmove", "memset", "abort", "__assert_fail"),
    *("sched_yield", "clock_gettime", "nanosleep", "usleep"),
    *("pthread_mutex_init", "pthread_mutex_destroy", "pthread_mutex_lock", "pthread_mutex_trylock"),
    *("pthread_mutex_timedlock", "pthread_mutex_clocklock", "pthread_mutex_unlock"),
    *("pthread_rwlock_init", "pthread_rwlock_destroy", "pthread_rwlock_unlock"),
    *(
        f"pthread_rwlock_{how}{what}lock"
        for how in ("", "try", "timed", "clock")
        for what in ("rd", "wr")
    ),
    *("pthread_cond_init", "pthread_cond_destroy", "pthread_cond_wait", "pthread_cond_timedwait"),
    *("pthread_cond_clockwait", "pthread_cond_signal", "pthread_cond_broadcast"),
    *(
        "sem_init",
        "sem_destroy",
        "sem_wait",
        "sem_trywait",
        "sem_timedwait",
        "sem_clockwait",
        "sem_post",
    ),
    *(
        "sem_getvalue",
        "syscall",
        "pthread_join",
        "pthread_detach",
        "pthread_self",
        "pthread_sigmask",
    ),
    # Functions of libstdc++'s library, and CPython's lock, on which cython.pymutex is based.
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
    *("_ZNSt18condition_variable10notify_oneEv", "_ZNSt18condition_variable10notify_allEv"),
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    *("_ZNSt6thread4joinEv", "_ZNSt6thread6detachEv"),
    *("_ZNSt6chrono3_V212steady_clock3nowEv", "_ZNSt6chrono3_V212system_clock3nowEv"),
    *("PyThread_acquire_lock", "PyThread_acquire_lock_timed", "PyThread_release_lock"),
)

LINE = re.compile(r'^(?P<line>#line \d+ )"(?P<file>[^"\n]+)"$', re.MULTILINE)

LINK_FLAGS = tuple(f"-Wl,--wrap={symbol}" for symbol in WRAPPED)
# pthread_create is renamed and not wrapped: libgcc refers to it weakly in the same link.
MACROS = (("PML_CHECKED", "1"), ("pthread_create", "pml_checked_pthread_create"))


def checked_extension(extension: Any) -> Any:
    """Return the checked twin of a setuptools ``Extension``: same name and sources, other flags.

    Build it into a separate tree, and load it by :func:`load_checked`. The engine does not see code
    that was not recompiled: other libraries and inline assembly.
    """
    twin = copy.copy(extension)
    twin.extra_compile_args = [*extension.extra_compile_args, *COMPILE_FLAGS]
    twin.extra_link_args = [*extension.extra_link_args, *LINK_FLAGS]
    twin.define_macros = [*extension.define_macros, *MACROS]
    return twin


def with_whole_paths(generated: Path, source: Path, folders: Sequence[str]) -> None:
    """Replace file names in ``#line`` directives of Cython's C code by absolute paths.

    Cython writes names relative to the folder in which it found a file; debuggers and reports would
    take them as relative to the current folder.
    """

    def whole(match: re.Match[str]) -> str:
        name = match["file"]
        named = source if source.as_posix().endswith("/" + name) else None
        found = named or next(
            (path for folder in folders if (path := Path(folder, name)).is_file()), None
        )
        return f'{match["line"]}"{found or name}"'

    generated.write_text(LINE.sub(whole, generated.read_text()))
