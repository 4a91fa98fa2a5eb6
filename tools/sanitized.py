"""Runs ``pulsar-ml`` on a sanitizer build: ``sanitized.py thread run range_cache ...``.

Each sanitizer has its own build tree under build/; its runtime is loaded before Python. The
extensions that are not instrumented are those of the checkout, which must be built.
"""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
RUNTIME = {
    "thread": ("libtsan.so",),
    "address": ("libasan.so",),
    "undefined": ("libubsan.so",),
    "address,undefined": ("libasan.so", "libubsan.so"),
}
# Code by Clang needs Clang's own runtime where it calls more than GCC's has, as from Clang 19 on.
OF_CLANG = {
    "thread": "tsan",
    "address": "asan",
    "undefined": "ubsan_standalone",
    "address,undefined": "asan",
}
OPTIONS = {
    # Reports end the run with exit code 66, so that no report passes for a clean run.
    "thread": {"TSAN_OPTIONS": "halt_on_error=1 exitcode=66 second_deadlock_stack=1"},
    # Python keeps memory until the process ends; the suites find leaks of the core themselves.
    "address": {"ASAN_OPTIONS": "detect_leaks=0 exitcode=66"},
    "undefined": {"UBSAN_OPTIONS": "print_stacktrace=1 halt_on_error=1 exitcode=66"},
}
# An interpreter without the GIL passes memory between threads by atomic instructions, which the
# thread sanitizer does not see as the interpreter is not built for it; malloc and free it sees.
OF_THE_INTERPRETER = (
    "race:_PyObjectStack_Pop\n" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
)
OPTIONS["address,undefined"] = OPTIONS["address"] | OPTIONS["undefined"]


def build(sanitizer: str) -> Path:
    """Build the sanitized package and return the folder to import it from."""
    base = ROOT / "build" / (sanitizer + os.environ.get("PULSAR_ML_OPTIMIZE", ""))
    base.mkdir(parents=True, exist_ok=True)
    log = base / "build.log"
    command = [sys.executable, "setup.py", "-q", "build", "--build-base", str(base)]
    with log.open("w") as output:
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "PULSAR_ML_SANITIZE": sanitizer},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if done.returncode:
        sys.stderr.write(log.read_text())
        raise SystemExit(f"the {sanitizer} build failed; its output is above and in {log}")
    library = next(base.glob("lib*"))
    add_plain(library)
    return library


def add_plain(library: Path) -> None:
    """Copies the extensions that the sanitizer build leaves out from the checkout."""
    for name in runpy.run_path(str(ROOT / "setup.py"))["NOT_SANITIZED"]:
        path = name.replace(".", "/") + SUFFIX
        if not (ROOT / path).exists():
            raise SystemExit(f"there is no {path}: build the checkout by `make build`")
        shutil.copy2(ROOT / path, library / path)


def runtime(sanitizer: str) -> str:
    """The paths of the sanitizer's runtime libraries, as the C compiler names them."""
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        compiler = "cc"
    own = f"libclang_rt.{OF_CLANG[sanitizer]}"
    for name in (f"{own}-{platform.machine()}.so", f"{own}.so"):
        if path := path_of(compiler, name):
            return path
    paths = [path_of(compiler, name) for name in RUNTIME[sanitizer]]
    if not all(paths):
        raise SystemExit(
            f"{compiler} has no {' or '.join(RUNTIME[sanitizer])}: install the sanitizer runtimes of "
            "your compiler (Debian/Ubuntu: they come with gcc, and in libclang-rt-19-dev for Clang "
            "19; Fedora: dnf install libtsan libasan libubsan)"
        )
    return " ".join(paths)


def path_of(compiler: str, name: str) -> str:
    """The whole path of a library of the compiler; "" if it has none of this name."""
    path = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True
    ).stdout.strip()
    return str(Path(path).resolve()) if Path(path).is_absolute() else ""


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] not in RUNTIME:
        raise SystemExit(f"usage: sanitized.py {'|'.join(RUNTIME)} ARGUMENTS OF pulsar-ml")
    sanitizer, arguments = sys.argv[1], sys.argv[2:]
    library = build(sanitizer)
    options = dict(OPTIONS[sanitizer])
    if sanitizer == "thread" and OF_THE_INTERPRETER:
        suppressions = library.parent / "suppressions.txt"
        suppressions.write_text(OF_THE_INTERPRETER)
        options["TSAN_OPTIONS"] += f" print_suppressions=0 suppressions='{suppressions}'"
    # The sanitized package comes before the checkout; -P keeps Python from putting the working
    # directory first.
    environment = {
        **os.environ,
        **options,
        "LD_PRELOAD": runtime(sanitizer),
        "PYTHONPATH": os.pathsep.join((str(library), str(ROOT))),
    }
    # Address space layout randomisation can collide with the thread sanitizer's shadow memory.
    prefix = ["setarch", "-R"] if sanitizer == "thread" and shutil.which("setarch") else []
    command = [*prefix, sys.executable, "-P", "-m", "pulsar_ml", *arguments]
    raise SystemExit(subprocess.run(command, env=environment).returncode)


if __name__ == "__main__":
    main()
