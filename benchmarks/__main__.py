"""``python -m benchmarks``: one table, medians of repeats, the machine on top."""

from __future__ import annotations

import importlib
import json
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import click
import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Benchmark, Figure, measure, progress
from pulsar_ml.errors import PulsarMlError

HERE = Path(__file__).resolve().parent
STRUCTURES = sorted(path.stem for path in (HERE / "structures").glob("[a-z]*.py"))
OTHERS = (
    "engine",
    "face",
    "readers",
    "pythreads",
    "linearize",
    "pulsar",
    "judging",
    "search",
    "report",
    "isolation",
    "exposure",
    "spark",
)
NAMES = (*STRUCTURES, *OTHERS)


def rows_of(name: str) -> ModuleType:
    """Import the module of the benchmark called ``name``."""
    return importlib.import_module(
        f"benchmarks.structures.{name}" if name in STRUCTURES else f"benchmarks.{name}"
    )


def machine() -> str:
    """One line about the machine."""
    model = platform.processor() or platform.machine()
    for line in (
        Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ()
    ):
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    load = psutil.getloadavg()[0]
    return (
        f"{model}, {psutil.cpu_count()} cores, {psutil.virtual_memory().total >> 30} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}, "
        f"load {load:.1f}"
    )


def number(value: float) -> str:
    """Two decimals for small numbers, one for others."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def table(figures: Sequence[Figure]) -> Table:
    result = Table(title="medians, with the lowest and highest of the repeats")
    for column in ("benchmark", "unit", "median", "lowest", "highest", "repeats", "target", ""):
        result.add_column(
            column, justify="left" if column in {"benchmark", "unit", ""} else "right"
        )
    for row in figures:
        benchmark = row.benchmark
        bound = (
            ""
            if benchmark.target is None
            else ("≥ " if benchmark.at_least else "≤ ") + f"{benchmark.target:g}"
        )
        result.add_row(
            benchmark.name,
            benchmark.unit,
            number(row.median),
            number(row.low),
            number(row.high),
            str(row.repeats),
            bound,
            {None: "", True: "met", False: "missed"}[row.met],
        )
    return result


class WithRows(click.Command):
    """A command whose help describes the rows of the structures on the command line."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["named"] = [name for name in NAMES if name in args]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for name in ctx.meta["named"]:
            module = rows_of(name)
            with formatter.section(f"Rows of {name}"):
                formatter.write_text(" ".join((module.__doc__ or "").split("\n\n")[0].split()))
                formatter.write_paragraph()
                # Rows beside a peer that is not here are left out.
                if module.BENCHMARKS:
                    formatter.write_dl(
                        [(row.name, described(row)) for row in module.BENCHMARKS], col_max=50
                    )


def described(row: Benchmark) -> str:
    """The unit of a row, its target and its explanation."""
    target = "" if row.target is None else f", {'≥' if row.at_least else '≤'} {row.target:g}"
    return f"{row.unit}{target}" + (f": {row.about}" if row.about else "")


@click.command(cls=WithRows, context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, type=click.Choice(NAMES))
@click.option(
    "--repeats",
    default=5,
    show_default=True,
    type=click.IntRange(1),
    help="Repeats of each benchmark; three for slow ones that agree.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def main(names: tuple[str, ...], repeats: int, as_json: bool) -> None:
    """Measure speed and memory of NAMES (structures and tools; default: all).

    Figures depend on the machine and its load: compare rows of one run, and look at the spread.
    Only ratios within one run, and counts of bytes and rows, have targets.

    \b
    python -m benchmarks
    python -m benchmarks range_cache removal_queue --repeats 9
    python -m benchmarks spark --help      describes its rows

    \b
    Exit codes: 0 measured, 2 usage error, 4 a benchmark failed, 130 interrupted. Finished rows are
    printed in any case, with the names of the missing ones.
    """
    chosen = [benchmark for name in names or NAMES for benchmark in rows_of(name).BENCHMARKS]
    figures: list[Figure] = []
    code = 0
    try:
        with progress(Console(stderr=True), len(chosen), repeats) as on_repeat:
            measure(chosen, repeats, figures, on_repeat)
    except KeyboardInterrupt:
        click.echo(f"Interrupted: {missing(chosen, repeats, figures)}", err=True)
        code = 130
    except (PulsarMlError, OSError, MemoryError, RuntimeError) as error:
        click.echo(f"Failed: {error}; {missing(chosen, repeats, figures)}", err=True)
        code = 4
    show(figures, chosen, repeats, as_json=as_json)
    sys.exit(code)


def show(
    figures: Sequence[Figure], chosen: Sequence[Benchmark], repeats: int, *, as_json: bool
) -> None:
    """Prints the figures as a table or as JSON; JSON also names the missing rows."""
    if not as_json:
        console = Console(width=None if Console().is_terminal else 140)
        console.print(machine())
        if figures:
            console.print(table(figures))
        return
    rows = [
        {
            "name": row.benchmark.name,
            "unit": row.benchmark.unit,
            "median": row.median,
            "lowest": row.low,
            "highest": row.high,
            "repeats": row.repeats,
            "target": row.benchmark.target,
            "met": row.met,
        }
        for row in figures
    ]
    data = {"machine": machine(), "repeats": repeats, "figures": rows}
    click.echo(json.dumps({**data, "missing": not_measured(chosen, figures)}, indent=2))


def not_measured(chosen: Sequence[Benchmark], figures: Sequence[Figure]) -> list[str]:
    return [row.name for row in chosen[len(figures) :]]


def missing(chosen: Sequence[Benchmark], repeats: int, figures: Sequence[Figure]) -> str:
    """A message that counts the finished rows and names the missing ones."""
    left = not_measured(chosen, figures)
    text = f"{len(figures)} of {len(chosen)} rows were measured"
    if figures and not figures[-1].whole:
        text += f", the last with {figures[-1].repeats} of {repeats} repeats"
    return text + "".join(f"\n  missing: {name}" for name in left)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
