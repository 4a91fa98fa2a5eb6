"""``pulsar-ml build``: an extension module from one .pyx file."""

from __future__ import annotations

import re
from pathlib import Path

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.errors import BuildError, UsageError
from pulsar_ml.extras import require
from pulsar_ml.terminal.command_line import short_path
from pulsar_ml.terminal.printer import echo


@new_command(
    "build",
    examples=(
        "build ticket.pyx",
        "build ticket.pyx --checked",
        "build ticket_cpp.pyx --checked --cplus --flag=-std=c++20",
        "build . --checked",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@option(
    "--checked",
    is_flag=True,
    group=shared.BUILD,
    help="Build for the engine, which then sees every access to memory.",
)
@option("--cplus", is_flag=True, group=shared.BUILD, help="Translate to C++ and compile as such.")
@option(
    "--into",
    default="build",
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    group=shared.BUILD,
    help="Folder for the result.",
)
@shared.compiler
def command(
    file: Path,
    checked: bool,
    cplus: bool,
    into: Path,
    include: tuple[Path, ...],
    flag: tuple[str, ...],
) -> None:
    """Build an extension module from one .pyx FILE, or a project's checked twin; print its path.

    The path changes with FILE, with the headers and .pxd files beside it, and with the options. A
    module that was built before is not built again.

    With --checked, FILE may be the folder of a project of setuptools or scikit-build-core: its own
    build runs, and the paths of its checked extensions are printed.
    """
    if checked and file.is_dir():
        from pulsar_ml.harness.building.project import build_project

        for path in build_project(file, into=into):
            echo(short_path(path))
        return
    if file.suffix != ".pyx":
        raise UsageError(
            f"{file} is not a .pyx file; C and C++ files go beside one that includes them"
        )
    require("build", "Cython", "setuptools", purpose="pulsar-ml build")
    from pulsar_ml.harness.building.build import build_extension

    try:
        built = build_extension(
            file,
            into=into,
            include=include,
            flags=flag,
            language="c++" if cplus else "c",
            checked=checked,
        )
    except BuildError as error:
        if cplus or not re.search(
            r"libcpp|cppclass|\+\+", file.read_text(encoding="utf-8", errors="replace")
        ):
            raise
        raise BuildError(f"{error}\n{file} seems to be C++: add --cplus") from None
    echo(short_path(built))
