"""Digest of the rows of one controlled sweep, equal on each interpreter, compiler and processor.

    python -m tools.sweep_digest                    sweeps, and prints what was built and the digest
    python -m tools.sweep_digest --out RUN          keeps the results directory
    python -m tools.sweep_digest --compare A B      rows of two results directories that differ

The sweep has eight programs of each suite, spread over all strategies. Of a row everything counts
but times, names of run, host and build, and the rest of an unfinished exhaustive search: it lists
plain accesses, whose order and addresses are the compiler's. Exit codes: 0 done, or no row differs;
1 rows differ, or the sweep found a violation; 2 no such directory.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import platform
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from pulsar_ml.campaign.store.columns import SPENT
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.errors import PulsarMlError

SWEEP = (
    "sweep", "--engine", "controlled", "--runner", "inline", "--strategy", "all", "--seeds", "8",
    "--executions", "40", "--chunk-size", "4", "--progress", "none",
)  # fmt: skip
OF_THE_RUN = {
    "run_id", "build_id", "host", "finished_at", "duration_us", "chunk_id", "rest", *SPENT,
}  # fmt: skip


def stable(row: Mapping[str, Any]) -> str:
    """The line of a row, without the columns that differ between two runs."""
    return json.dumps({name: row[name] for name in sorted(row) if name not in OF_THE_RUN})


def lines(run: Path) -> list[str]:
    """The lines of all trials of a results directory. Raises PulsarMlError."""
    return sorted(stable(row) for table in open_run(run).trials() for row in table.to_pylist())


def digest(rows: Iterable[str]) -> str:
    """Sixteen hexadecimal digits."""
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def differing(first: Iterable[str], second: Iterable[str]) -> list[str]:
    """The lines that only one of two sweeps has."""
    return sorted(set(first) ^ set(second))


def compiler() -> str:
    """The compiler that an extension names, such as ``GCC: (Debian 12.2.0-14) 12.2.0``."""
    spec = importlib.util.find_spec("pulsar_ml.operations._checked")
    if spec is None or spec.origin is None:
        return "not built"
    with open(spec.origin, "rb") as file:
        section = ELFFile(file).get_section_by_name(".comment")
        names = section.data().decode().split("\0") if section is not None else []
    return next((name for name in names if "clang" in name), next(filter(None, names), "unknown"))


def main() -> int:
    """Sweeps, or compares."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, help="a new results directory that is kept")
    parser.add_argument("--compare", type=Path, nargs=2, metavar="RUN", help="compare these")
    options = parser.parse_args()
    try:
        if options.compare:
            found = differing(*map(lines, options.compare))
            print("\n".join(found) or "no row differs")
            return int(bool(found))
        with tempfile.TemporaryDirectory() as scratch:
            run = options.out or Path(scratch, "run")
            command = [sys.executable, "-m", "pulsar_ml", *SWEEP, "--out", str(run)]
            code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
            rows = lines(run)
    except PulsarMlError as error:
        parser.error(str(error))
    gil = "without" if sysconfig.get_config_var("Py_GIL_DISABLED") else "with"
    print(f"CPython {platform.python_version()} {gil} the GIL, {compiler()}, {platform.machine()}")
    print(f"{len(rows)} rows, digest {digest(rows)}")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
