"""``pulsar-ml pack``: the Python environment of executors in one archive."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.distributed.machines import environment
from pulsar_ml.terminal.progress import ProgressDisplay


@new_command(
    "pack",
    examples=(
        "pack",
        "pack --out executors.tar.gz",
        "doctor --master spark://host:7077 --environment executors.tar.gz",
        "sweep --master spark://host:7077 --environment executors.tar.gz",
    ),
)
@shared.out("The archive.", "dist/executors.tar.gz", dir_okay=False)
@option(
    "--wheel",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    group=shared.CODE,
    help="Wheel of pulsar_ml.  [default: built from the checkout, or the installed package]",
)
def command(out: Path, wheel: Path | None) -> None:
    """Pack what executors need into one archive.

    It holds an environment with pulsar_ml and copies of the installed packages that a task imports.
    A stranger's suites travel with each sweep. The archive works on machines with the same Python
    at the same path and a C library that is not older. It is unpacked and tried before the command
    ends.
    """
    environment.check_tools()
    with (
        tempfile.TemporaryDirectory(prefix="pulsar_ml-pack-") as scratch,
        ProgressDisplay() as progress,
    ):
        work = Path(scratch)
        archive = work / "archive.tar.gz"
        if wheel is None and environment.in_checkout():
            progress.begin("building the wheel")
            wheel = environment.build_wheel(work / "wheel")
        progress.begin(f"an environment with {wheel.name if wheel else 'the installed package'}")
        environment.make_environment(work / "environment", wheel)
        progress.begin(f"packing {out}")
        out.parent.mkdir(parents=True, exist_ok=True)
        environment.pack(work / "environment", archive)
        progress.begin("trying the archive")
        found = environment.examined(archive, work / "unpacked")
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        shutil.move(archive, out)
    click.echo(f"{out}: {out.stat().st_size / 1e6:.0f} MB, SHA-256 {digest}")
    click.echo(f"Python {found.python}, build {found.build}, known trace {found.trace}")
