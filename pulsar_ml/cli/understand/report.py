"""``pulsar-ml report``: a report about a run, a failure, or a folder of failures."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click
from click.core import ParameterSource

from pulsar_ml.campaign.local.failures import read_failure
from pulsar_ml.campaign.local.record_kind import is_failure
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
from pulsar_ml.report.single import gather_failures, is_run
from pulsar_ml.report.traces import TraceView, trace_views
from pulsar_ml.terminal.hash_seed import restart_under
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
        "report .pulsar_ml/failures/test_queue-8ce1ba9e6d70.json --trust",
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
    help="File of the report; - is the terminal.  [default: RUN/report.html, or FAILURE.html; "
    "other formats: -]",
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
@shared.baseline("an earlier results directory, a folder of records")
@shared.module("the one that failed")
@shared.trust
def command(
    context: click.Context,
    /,
    run: Path,
    out: Path | None,
    kind: str,
    traces: int,
    module: str | None,
    kill_table: Path | None,
    trust: bool,
    history: tuple[Path, ...],
    live: bool,
    port: int | None,
    baseline: tuple[Path, ...],
) -> int:
    """Report about RUN, the results directory of a sweep, or of run or explore with --out.

    RUN is also the record of one failure, or a folder of records such as .pulsar_ml/failures.

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
            found, what = read(run, drawn, module, kill_table, known, trust=trust, quiet=True)
            if history:
                found.history = read_history(history, found.run)
            return FORMATS[HTML](found, what), found.run.facts["status"] == "running"

        return serve(LivePage(run, make), port or 0)
    if port is not None:
        raise UsageError("--port is for --live")
    most = traces if kind in WITH_DRAWINGS else 0
    found, what = read(run, most, module, kill_table, known, trust=trust)
    if history:
        found.history = with_progress(history, found.run)
    # JSON may contain lone surrogates, which no file can hold.
    text = FORMATS[kind](found, what).encode(errors="replace").decode()
    if out is None and kind == HTML:
        out = run.with_suffix(".html") if run.is_file() else run / "report.html"
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
    path: Path,
    traces: int,
    module: str | None = None,
    kill_table: Path | None = None,
    baseline: Baseline | None = None,
    *,
    trust: bool = False,
    quiet: bool = False,
) -> tuple[Findings, list[TraceView]]:
    """The findings of a run or of failures, and their drawings, with progress on the terminal."""
    with ProgressDisplay(quiet=quiet) as progress:
        if is_run(path):
            run = open_run(path)
            progress.begin("reading rows", run.rows())
            found = gather(run, progress.advance, kill_cells=kill_table, baseline=baseline)
        else:
            found = gather_failures(path, baseline)
            if trust:
                restart_for_hashes(found)
        groups = found.summary.in_order()
        progress.begin("making failures again", len(groups))
        views = trace_views(
            groups, most=traces, module=module, build=trust, on_view=progress.advance
        )
        return found, list(views)


def restart_for_hashes(found: Findings) -> None:
    """Start the command again under the hash seed of the only failure, if it has one."""
    records = list(found.records.values())
    if len(records) == 1 and is_failure(records[0]):
        restart_under(read_failure(records[0]).hash_seed)
