"""``python -m pulsar_ml report``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import Console

from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.cli.progress import progress
from pulsar_ml.errors import UsageError
from pulsar_ml.report import formats
from pulsar_ml.report.findings import Findings, gather
from pulsar_ml.report.page import render
from pulsar_ml.report.traces import TraceView, trace_views

HTML = "html"
FORMATS: dict[str, Callable[[Findings, Sequence[TraceView]], str]] = {
    HTML: lambda findings, views: render(findings, views, made_at=datetime.now(UTC)),
    "sarif": formats.as_sarif,
    "junit": formats.as_junit,
    "markdown": formats.as_markdown,
    "json": formats.as_json,
}
WITH_DRAWINGS = (HTML,)


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="Where it goes; - is the terminal. Default: RUN/report.html, and the terminal for other formats.",
)  # fmt: skip
@click.option(
    "--format", "kind", type=click.Choice(tuple(FORMATS)), default=HTML, show_default=True
)
@click.option(
    "--traces", default=50, show_default=True, type=click.IntRange(0),
    help="Signatures whose interleaving is drawn; each is made again once.",
)  # fmt: skip
@click.option(
    "--module",
    help="Make failures again on this checked module: a name or a .so file, which is loaded.",
)
@click.option(
    "--kill-table", type=click.Path(path_type=Path), metavar="FILE",
    help="The product's kill table, CSV of make kill-table. Default: RUN/kill_table.csv, if it is there.",
)  # fmt: skip
def report(
    run: Path,
    output: Path | None,
    kind: str,
    traces: int,
    module: str | None,
    kill_table: Path | None,
) -> None:
    """A report about RUN, the results directory of a sweep or of python -m stress with --out.

    \b
    python -m pulsar_ml report runs/20250102T030405-abcd
    python -m pulsar_ml report runs/20250102T030405-abcd -o report.html --traces 200
    python -m pulsar_ml report runs/20250102T030405-abcd --format sarif > found.sarif
    python -m pulsar_ml report runs/20250102T030405-abcd --kill-table stress/mutants/data/kill_table.csv

    The page needs no network. Interleavings come from making failures again, step by step, where this build
    is the one that failed; elsewhere the page says so and shows what was stored. A run that grows can be
    reported at any time.

    \b
    Exit codes are those of the run: 0 clean, 1 violation, 3 nothing exercised, 4 failed, 130 interrupted;
    2: something given is wrong or damaged, and nothing was written.
    """
    found, what = read(run, traces if kind in WITH_DRAWINGS else 0, module, kill_table)
    # JSON may hold halves of characters, which no file takes.
    text = FORMATS[kind](found, what).encode(errors="replace").decode()
    if output is None and kind == HTML:
        output = run / "report.html"
    if output is None or str(output) == "-":
        click.echo(text, nl=False)
    else:
        write(output, text)
        click.echo(f"{output}: {len(text.encode()) / 1e3:,.0f} kB", err=True)
    sys.exit(found.exit_code)


def read(
    directory: Path, traces: int, module: str | None = None, kill_table: Path | None = None
) -> tuple[Findings, list[TraceView]]:
    """What a run found and what is shown of it, with progress on the terminal."""
    run = open_run(directory)
    with progress(Console(stderr=True)) as begin:
        found = gather(run, begin("reading rows", run.rows()), kill_cells=kill_table)
        groups = found.summary.in_order()
        drawn = begin("making failures again", len(groups))
        return found, list(
            trace_views(groups, most=traces, module=module, on_view=lambda: drawn(1))
        )


def write(path: Path, text: str) -> None:
    """The whole text or nothing; what was at ``path`` stays until then."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None
