"""``python -m pulsar_ml build``."""

from __future__ import annotations

from pathlib import Path

import click

from pulsar_ml.harness.building.build import build_extension


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--checked", is_flag=True, help="For the engine: every access to memory is seen.")
@click.option("--cplus", is_flag=True, help="Translate to C++ and compile as such.")
@click.option(
    "--into", default="build", show_default=True, type=click.Path(path_type=Path, file_okay=False),
    help="The folder that receives the result.",
)  # fmt: skip
@click.option(
    "--include", multiple=True, type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder of headers and .pxd files, beside that of FILE. Repeatable.",
)  # fmt: skip
@click.option(
    "--flag", multiple=True, help="A flag for the compiler, as --flag=-std=c++20. Repeatable."
)
def build(
    file: Path,
    checked: bool,
    cplus: bool,
    into: Path,
    include: tuple[Path, ...],
    flag: tuple[str, ...],
) -> None:
    """Build an extension module from one .pyx FILE, and print its path.

    \b
    python -m pulsar_ml build ticket.pyx
    python -m pulsar_ml build ticket.pyx --checked
    python -m pulsar_ml build ticket_cpp.pyx --checked --cplus --flag=-std=c++20

    The path changes with FILE, with the headers and .pxd files beside it, and with the options; what was
    built before is not built again. A test does the same by
    pulsar_ml.harness.building.build.build_extension(FILE, into=..., checked=True).

    Exit codes: 0 built, 2 something given is wrong, 4 it does not compile; the compiler's words follow.
    """
    built = build_extension(
        file,
        into=into,
        include=include,
        flags=flag,
        language="c++" if cplus else "c",
        checked=checked,
    )
    here = Path.cwd()
    click.echo(built.relative_to(here) if built.is_relative_to(here) else built)
