#!/bin/sh
# Says in one sentence what is missing to build or to run Spark, and which package brings it.
# Usage: prerequisites.sh PYTHON [java]
set -u
python=$1

fail() { printf '%s\n' "$1" >&2; exit 4; }

command -v "$python" >/dev/null 2>&1 ||
    fail "No '$python' found: install Python 3.11 or newer (Debian/Ubuntu: apt install python3 \
python3-venv python3-dev; Fedora: dnf install python3-devel), or name one with 'make \
PYTHON=...'."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "'$python' is $("$python" -V 2>&1), but Python 3.11 or newer is needed: install it, or name one \
with 'make PYTHON=python3.11'."
"$python" -c 'import venv, ensurepip' 2>/dev/null ||
    fail "This Python cannot make virtual environments: install them (Debian/Ubuntu: apt install \
python3-venv)."
command -v "${CC:-cc}" >/dev/null 2>&1 ||
    fail "No C compiler '${CC:-cc}' found: install one (Debian/Ubuntu: apt install gcc; Fedora: dnf \
install gcc)."
include=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
[ -f "$include/Python.h" ] ||
    fail "No Python.h in $include: install Python's headers (Debian/Ubuntu: apt install python3-dev; \
Fedora: dnf install python3-devel)."
[ "${2:-}" = java ] || exit 0
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
command -v "$java" >/dev/null 2>&1 ||
    fail "No Java found ('$java'), and Spark needs Java 17 or newer: install it (Debian/Ubuntu: apt \
install openjdk-17-jre-headless; Fedora: dnf install java-17-openjdk-headless), or set \
JAVA_HOME."
version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
[ "${version:-0}" -ge 17 ] ||
    fail "'$java' is version ${version:-unknown}, and Spark needs Java 17 or newer: install it \
(Debian/Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME."
