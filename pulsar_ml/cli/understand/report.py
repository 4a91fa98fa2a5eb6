"""``pulsar-ml report``: a report about a run."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from click.core import ParameterSource

from pulsar_ml.campaign.store.baseline import baseline_of
from pulsar_ml.campaign.store.read_run import SavedRun, open_run
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.errors import UsageError
from pulsar_ml.exit_codes import CLEAN, SEARCH
from pulsar_ml.harness.testing.known import Baseline, today
from pulsar_ml.report import formats
from pulsar_ml.report.files import write
from pulsar_ml.report.findings import Findings, gather
from pulsar_ml.report.live import LivePage, live_server
from pulsar_ml.report.page import render
from pulsar_ml.report.run_history import RunHistory, read_history
from pulsar_ml.report.traces import TraceView, trace_views
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay

HTML = "html"
FORMATS: dict[str, Callable[[Findings, Sequence[TraceView]], str]] = {
    HTML: lambda findings, views: render(findings, views, made_at=datetime.now(UTC)),
    "sarif": formats.as_sarif,
    "junit": formats.as_junit,
    "markdown": formats.as_markdown,
    "json": formats.as_json,
}
LIVE = "Growing runs"
DEFAULT = ParameterSource.DEFAULT
OF_FILES = ("out", "kind", "traces")
WITH_DRAWINGS = (HTML, "markdown")


@new_command(
    "report",
    examples=(
        "report runs/20250102T030405-abcd",
        "report runs/20250102T030405-abcd --out report.html --traces 200",
        "report runs/20250102T030405-abcd --format sarif > found.sarif",
        "report runs/night --history runs --baseline known.toml",
        "report runs/night --live",
    ),
    exit_codes=SEARCH,
)
@click.pass_context
@click.argument("run", type=click.Path(path_type=Path))
@option(
    "--out",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    group=shared.OUTPUT,
    help="File of the report; - is the terminal.  [default: RUN/report.html; other formats: -]",
)
@option(
    "--format",
    "kind",
    type=click.Choice(tuple(FORMATS)),
    default=HTML,
    show_default=True,
    group=shared.OUTPUT,
    help="Page or data format.",
)
@option(
    "--traces",
    default=50,
    show_default=True,
    type=click.IntRange(0),
    group=shared.OUTPUT,
    help="Signatures whose interleaving is drawn; each failure is made again once.",
)
@option(
    "--kill-table",
    type=click.Path(path_type=Path),
    metavar="FILE",
    group=shared.OUTPUT,
    help="Kill table (CSV of make kill-table).  [default: RUN/kill_table.csv, if it exists]",
)
@option(
    "--history",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    group=shared.OUTPUT,
    help="Earlier runs of the project, or a folder of results directories, to compare the run with. "
    "Repeatable.",
)
@option(
    "--live",
    is_flag=True,
    group=LIVE,
    help="Serve the page of a growing run to the browsers of this machine until Ctrl-C.",
)
@option(
    "--port",
    type=click.IntRange(1, 65_535),
    group=LIVE,
    help="Port of --live.  [default: a free one]",
)
@shared.baseline("an earlier results directory")
@shared.module("the one that failed")
def command(
    context: click.Context,
    /,
    run: Path,
    out: Path | None,
    kind: str,
    traces: int,
    module: str | None,
    kill_table: Path | None,
    history: tuple[Path, ...],
    live: bool,
    port: int | None,
    baseline: tuple[Path, ...],
) -> int:
    """Report about RUN, the results directory of a sweep, or of run or explore with --out.

    The page needs no network. Interleavings are drawn where this build is the one that failed;
    elsewhere the page says so and shows the stored facts. A growing run can be reported at any
    time. The exit code is that of the run; with --baseline, of its new failures.
    """
    known = baseline_of(baseline, today()) if baseline else None
    chosen = {name for name in OF_FILES if context.get_parameter_source(name) is not DEFAULT}
    if live:
        if chosen - {"traces"}:
            raise UsageError("--live serves the page; it takes neither --out nor --format")
        drawn = traces if "traces" in chosen else 0

        def make() -> tuple[str, bool]:
            found, what = read(run, drawn, module, kill_table, known, quiet=True)
            if history:
                found.history = read_history(history, found.run)
            return FORMATS[HTML](found, what), found.run.facts["status"] == "running"

        return serve(LivePage(run, make), port or 0)
    if port is not None:
        raise UsageError("--port is for --live")
    found, what = read(run, traces if kind in WITH_DRAWINGS else 0, module, kill_table, known)
    if history:
        found.history = with_progress(history, found.run)
    # JSON may contain lone surrogates, which no file can hold.
    text = FORMATS[kind](found, what).encode(errors="replace").decode()
    if out is None and kind == HTML:
        out = run / "report.html"
    last = f"; {known.sentence(found.summary.groups)}" if known else ""
    if out is None or str(out) == "-":
        echo(text, nl=False)
        if last:
            echo(last.removeprefix("; "), err=True)
    else:
        write(out, text)
        echo(f"{out}: {len(text.encode()) / 1e3:,.0f} kB{last}", err=True)
    return int(found.exit_code)


def serve(page: LivePage, port: int) -> int:
    """Serve the page until Ctrl-C, which is the way to end it and no failure."""
    page.content()  # a run that cannot be read is refused here
    server, address = live_server(page, port)
    with server:
        echo(f"{address}\nserved to this machine alone; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt as error:
            if getattr(error, "number", signal.SIGINT) != signal.SIGINT:
                raise
    return CLEAN


def with_progress(paths: Sequence[Path], run: SavedRun) -> RunHistory:
    """The history of a run, with progress on the terminal."""
    with ProgressDisplay() as progress:
        progress.begin("reading earlier runs")
        return read_history(paths, run, progress.advance)


def read(
    directory: Path,
    traces: int,
    module: str | None = None,
    kill_table: Path | None = None,
    baseline: Baseline | None = None,
    *,
    quiet: bool = False,
) -> tuple[Findings, list[TraceView]]:
    """The findings of a run and their drawings, with progress on the terminal."""
    run = open_run(directory)
    with ProgressDisplay(quiet=quiet) as progress:
        progress.begin("reading rows", run.rows())
        found = gather(run, progress.advance, kill_cells=kill_table, baseline=baseline)
        groups = found.summary.in_order()
        progress.begin("making failures again", len(groups))
        return found, list(
            trace_views(groups, most=traces, module=module, on_view=progress.advance)
        )
