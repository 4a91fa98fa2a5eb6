"""Checked builds: the same sources, compiled so that every access to memory calls the engine.

They use the compiler's thread-sanitizer instrumentation without its runtime: the flag is passed
when compiling, and not when linking. The linker redirects calls of libc that would escape the
engine. The sources stay unchanged.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import os
import re
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# -fno-builtin-*: expanded inline, these functions would write memory without a call. Frame pointers
# and debug information serve the reports. GCC's link-time optimisation calls nothing: it would
# instrument when linking, where the flag is not passed.
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
    "-fno-lto",
    "-U_FORTIFY_SOURCE",
    "-UNDEBUG",  # Python's own flags define it, and an assertion is worth checking here
    "-Wno-unknown-warning-option",  # for Clang, which has no -Wtsan
    "-Wno-tsan",
)

OF_FUTURES = "_ZNSt28_" + "_atomic_futex_unsigned_base"  # a class, of which these are methods

WRAPPED = (
    *("malloc", "calloc", "realloc", "free", "posix_memalign", "aligned_alloc"),
    "memalign",
    *(f"_Zn{kind}m{how}" for kind in "wa" for how in ("", "RKSt9nothrow_t", "St11align_val_t")),
    *(
        f"_Zd{kind}Pv{how}"
        for kind in "la"
        for how in ("", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t")
    ),
    *("memcpy", "memmove", "memset", "abort", "__assert_fail"),
    *("_ZSt9terminatev", "_ZSt21__glibcxx_assert_failPKciS0_S0_"),
    *("sched_yield", "clock_gettime", "nanosleep", "usleep"),
    *("clock_nanosleep", "sleep", "gettimeofday", "time"),
    *("getrandom", "getentropy", "_ZNSt13random_device9_M_getvalEv"),
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
        "pthread_exit",
        "pthread_self",
        "pthread_sigmask",
    ),
    # Functions that reach data of a single thread.
    *("__tls_get_addr", "__cxa_thread_atexit", "__cxa_atexit", "sigaltstack"),
    *(f"pthread_{call}" for call in ("key_create", "key_delete", "getspecific", "setspecific")),
    *("gettid", "sched_getcpu", "pthread_setname_np", "pthread_getname_np"),
    *("pthread_setaffinity_np", "pthread_getaffinity_np"),
    *("pthread_setschedparam", "pthread_getschedparam"),
    *("fesetround", "fesetenv", "feupdateenv", "feholdexcept", "feclearexcept", "feraiseexcept"),
    *("fesetexceptflag", "feenableexcept", "fedisableexcept"),
    # Synchronisation of one call, or of many threads.
    *("__cxa_guard_acquire", "__cxa_guard_release", "__cxa_guard_abort"),
    *("pthread_once", "call_once"),
    *(f"pthread_barrier_{call}" for call in ("init", "destroy", "wait")),
    *(f"pthread_spin_{call}" for call in ("init", "destroy", "lock", "trylock", "unlock")),
    *(f"mtx_{call}" for call in ("init", "destroy", "lock", "trylock", "timedlock", "unlock")),
    *(f"cnd_{call}" for call in ("init", "destroy", "wait", "timedwait", "signal", "broadcast")),
    *(f"thrd_{call}" for call in ("create", "join", "detach", "exit", "current", "yield", "sleep")),
    *(f"tss_{call}" for call in ("create", "delete", "get", "set")),
    # Functions of libstdc++'s library, and CPython's lock, on which cython.pymutex is based.
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
    *("_ZNSt18condition_variable10notify_oneEv", "_ZNSt18condition_variable10notify_allEv"),
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
    *("_ZNSt6thread4joinEv", "_ZNSt6thread6detachEv"),
    *("_ZNSt6chrono3_V212steady_clock3nowEv", "_ZNSt6chrono3_V212system_clock3nowEv"),
    *("_ZNSt10_Sp_lockerC1EPKv", "_ZNSt10_Sp_lockerC1EPKvS1_", "_ZNSt10_Sp_lockerD1Ev"),
    *(
        f"{OF_FUTURES}{call}EPjjbNSt6chrono8durationIlSt5ratioILl1ELl1EEEE"
        "NS2_IlS3_ILl1ELl1000000000EEEE"
        for call in ("19_M_futex_wait_until", "26_M_futex_wait_until_steady")
    ),
    f"{OF_FUTURES}19_M_futex_notify_allEPj",
    "_ZNSt13__future_base13_State_baseV211_Make_ready6_M_setEv",
    "_ZSt25notify_all_at_thread_exitRSt18condition_variableSt11unique_lockISt5mutexE",
    *("PyThread_acquire_lock", "PyThread_acquire_lock_timed", "PyThread_release_lock"),
    *("PyMutex_Lock", "PyMutex_Unlock"),
    *("PyEval_SaveThread", "PyEval_RestoreThread"),
    *("PyGILState_Ensure", "PyGILState_Release", "PyGILState_Check"),
)

LINE = re.compile(r'^(?P<line>#line \d+ )"(?P<file>[^"\n]+)"$', re.MULTILINE)

OF_CXX = re.compile(rb"^#\s*distutils:\s*language\s*=\s*c\+\+", re.MULTILINE)

# The comment above what Cython adds to the user's code: the import of the module, and its helpers.
# At -O2 a compiler takes longer for that than for a small module.
CYTHONS_PART = re.compile(r"^/\* #### Code section: init_module ### \*/$", re.MULTILINE)
LESS_OPTIMIZED = """\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O1", "no-omit-frame-pointer")
#endif"""

# Without the GIL each count of references is an atomic operation, which would be a step, and a
# helper of Cython makes more of them while its cache is empty. Neither is the user's code. The two
# headers of C++ that Python.h includes have inline namespaces, so they come first. The user's locks
# are seen: what the header does in place is left to the functions behind it, which are wrapped. In
# C++ the helpers' atomic operations are functions of <atomic>, which the user's code calls, too, so
# they become builtins.
PYTHON_H = re.compile(r'^#include "Python\.h"$', re.MULTILINE)
WITHOUT_GIL = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
UNSEEN_PYTHON_H = """\
#ifdef __cplusplus
#include <cmath>
#include <cstdlib>
#endif
#define inline inline __attribute__((no_sanitize("thread")))
#include "Python.h"
#undef inline
#undef PyMutex_Lock
#undef PyMutex_Unlock"""
UNSEEN_HELPERS = """
#define PyMutex_Lock _PyMutex_Lock
#define PyMutex_Unlock _PyMutex_Unlock
#ifdef __cplusplus
#undef __pyx_atomic_incr_relaxed
#undef __pyx_atomic_incr_acq_rel
#undef __pyx_atomic_decr_acq_rel
#undef __pyx_atomic_sub
#undef __pyx_atomic_int_cmp_exchange
#define __pyx_atomic_incr_relaxed(cell) __atomic_fetch_add((int*)(cell), 1, __ATOMIC_RELAXED)
#define __pyx_atomic_incr_acq_rel(cell) __atomic_fetch_add((int*)(cell), 1, __ATOMIC_ACQ_REL)
#define __pyx_atomic_decr_acq_rel(cell) __atomic_fetch_sub((int*)(cell), 1, __ATOMIC_ACQ_REL)
#define __pyx_atomic_sub(cell, less) __atomic_fetch_sub((int*)(cell), less, __ATOMIC_SEQ_CST)
#define __pyx_atomic_int_cmp_exchange(cell, seen, value) __atomic_compare_exchange_n( \\
    (int*)(cell), seen, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#endif
#pragma GCC diagnostic ignored "-Wattributes"
#define static static __attribute__((no_sanitize("thread")))"""

LINK_FLAGS = tuple(f"-Wl,--wrap={symbol}" for symbol in WRAPPED)
# pthread_create is renamed and not wrapped: libgcc refers to it weakly in the same link.
MACROS = (("PML_CHECKED", "1"), ("pthread_create", "pml_checked_pthread_create"))


OF_CLANG = (
    "tsan-instrument-read-before-write=1",
    *("hoist-common-insts=0", "sink-common-insts=0", "enable-tail-merge=0"),
)

# Later versions split static variables into their members and leave out the stores to one that
# nobody reads, list the places of a local variable without those where only its address is known,
# and leave out blocks of malloc() that nobody reads.
LATER_CLANG = 18
OF_LATER_CLANG = (
    "-fkeep-persistent-storage-variables",
    *("-Xclang", "-fexperimental-assignment-tracking=disabled"),
    *(f"-fno-builtin-{each}" for each in ("malloc", "calloc", "realloc", "free")),
)
CLANG = re.compile(r"\bclang version (\d+)")

# Volatile accesses are compiled as plain ones, whose races are failures, or as relaxed atomics,
# which code in the style of READ_ONCE means.
VOLATILE = ("plain", "relaxed")


@functools.cache
def clang_version(compiler: tuple[str, ...]) -> int:
    """The major version of this command if it is Clang; 0 for another compiler."""
    about = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=False)
    found = CLANG.search(about.stdout)
    return int(found[1]) if found else 0


def compiler_of(language: str) -> list[str]:
    """The command with which setuptools compiles "c" or "c++"."""
    variable = "CXX" if language == "c++" else "CC"
    return shlex.split(os.environ.get(variable) or sysconfig.get_config_var(variable) or "cc")


def checked_flags(volatile: str, compiler: Sequence[str]) -> list[str]:
    """The flags of a checked build by a compiler; ``volatile`` is one of VOLATILE."""
    return [*COMPILE_FLAGS, *flags_of(volatile, clang=clang_version(tuple(compiler)))]


def flags_of(volatile: str, *, clang: int) -> list[str]:
    """The flags that only GCC knows, or only Clang; ``clang`` is its major version, or 0.

    Clang leaves out the read of ``x += 1`` before its write unless it is asked for both, and makes
    one call of equal ones in two branches, which has no line then.
    """
    if volatile not in VOLATILE:
        raise ValueError(f"volatile is {volatile!r}; it should be one of: {', '.join(VOLATILE)}")
    options = [*OF_CLANG] if clang else []
    options += ["tsan-distinguish-volatile=1"] if volatile == "relaxed" else []
    if not clang:
        return [f"--param={each}" for each in options]
    later = OF_LATER_CLANG if clang >= LATER_CLANG else ()
    return [*(word for each in options for word in ("-mllvm", f"-{each}")), *later]


def language_of(extension: Any) -> str:
    """The language of a setuptools ``Extension``, which a comment of a .pyx file may name."""
    for source in extension.sources:
        suffix = Path(source).suffix
        if suffix in (".cpp", ".cc", ".cxx"):
            return "c++"
        with contextlib.suppress(OSError):
            if suffix == ".pyx" and OF_CXX.search(Path(source).read_bytes()):
                return "c++"
    return extension.language or "c"


def checked_extension(extension: Any, *, volatile: str = "plain") -> Any:
    """Return the checked twin of a setuptools ``Extension``: same name and sources, other flags.

    ``volatile`` is one of VOLATILE. Build the twin into a separate tree, and load it by
    :func:`load_checked`. The engine does not see code that was not recompiled: other libraries and
    inline assembly.
    """
    twin = copy.copy(extension)
    flags = checked_flags(volatile, compiler_of(language_of(extension)))
    twin.extra_compile_args = [*extension.extra_compile_args, *flags]
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
        return f'{match["line"]}"{os.path.normpath(found or name)}"'

    # A path may have bytes that are no UTF-8; the compiler gets them as they are.
    text = generated.read_text(encoding="utf-8", errors="surrogateescape")
    text = LINE.sub(whole, text)
    helpers = LESS_OPTIMIZED
    if WITHOUT_GIL:
        text, helpers = PYTHON_H.sub(UNSEEN_PYTHON_H, text), helpers + UNSEEN_HELPERS
    text = CYTHONS_PART.sub(lambda _: helpers, text)
    generated.write_text(text, encoding="utf-8", errors="surrogateescape")
