"""``pulsar-ml check``: functions of C, C++, Cython and Python files as tests under the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.find import check_files
from pulsar_ml.cli.options import child_limits
from pulsar_ml.cli.output import print_json
from pulsar_ml.errors import LimitsError, NondeterminismError, UsageError
from pulsar_ml.exit_codes import (
    CLEAN,
    FAILED,
    INTERRUPTED,
    NOTHING_EXERCISED,
    SEARCH,
    VIOLATION,
    ExitCode,
    worst,
)
from pulsar_ml.terminal.command_line import command_line, short_path
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.wording import counted

if TYPE_CHECKING:
    from pulsar_ml.harness.functions.check import Checked, PythonTest
    from pulsar_ml.harness.functions.source import TestFunction, TestSource
    from pulsar_ml.harness.search.child import Limits
    from pulsar_ml.harness.search.failure import Failure, Replayed
    from pulsar_ml.harness.subjects.subject import Subject
    from pulsar_ml.harness.testing.known import Baseline

CODES = {"clean": CLEAN, "violation": VIOLATION, "nothing_exercised": NOTHING_EXERCISED}


@new_command(
    "check",
    examples=(
        "check ring_test.cpp",
        "check ring_test.cpp::test_push --mode sc --executions 200000",
        "check tests -k ring -I include --std c++20",
    ),
    exit_codes=SEARCH,
)
@click.argument("files", nargs=-1, required=True, metavar="FILE[::TEST]...")
@option("-k", "part", metavar="TEXT", default="", help="Only tests whose name contains TEXT.")
@shared.seed(None, "[default: the test's, or 0]")
@shared.executions(
    None, "[default: the test's, or 50000; in Python 20000; with --seconds no limit]"
)
@shared.seconds("Time for each test.  [default: the test's, or none]")
@shared.threads(
    63, "Threads that call each test at once, in C and C++.  [default: the test's, or 1]"
)
@option(
    "--mode",
    type=click.Choice(shared.MODES),
    group=shared.SEARCH,
    help="Memory model.  [default: the test's, or c11]",
)
@shared.strategy(None, "[default: the test's, or portfolio]")
@shared.bounds(always=False)
@shared.faults()
@shared.suppress
@option(
    "--semantics",
    type=click.Choice(("gil", "free")),
    group=shared.SEARCH,
    help="Of tests in Python: free reports races.  [default: gil]",
)
@option("--no-races", is_flag=True, group=shared.SEARCH, help="Do not report data races.")
@option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="RECORD",
    group=shared.SEARCH,
    help="Repeat the failure of a record, and show it step by step.",
)
@shared.compiler
@option(
    "--std",
    metavar="NAME",
    group=shared.BUILD,
    help="Standard, such as c++17.  [default: c++20, c17]",
)
@option(
    "--pkg-config", "packages", multiple=True, metavar="NAME", group=shared.BUILD,
    help="Package whose flags pkg-config knows. Repeatable.",
)  # fmt: skip
@option(
    "--compile-commands",
    "database",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    group=shared.BUILD,
    help="Database with the flags of files.  [default: the nearest compile_commands.json]",
)
@option(
    "--volatile",
    type=click.Choice(("plain", "relaxed")),
    default="plain",
    show_default=True,
    group=shared.BUILD,
    help="Meaning of volatile accesses: plain ones, or relaxed atomics.",
)
@option(
    "--into",
    default=str(Path(".pulsar_ml") / "build"),
    show_default=True,
    type=click.Path(path_type=Path, file_okay=False),
    group=shared.BUILD,
    help="Folder of builds.",
)
@shared.child_patience()
@shared.baseline("a folder of records, as .pulsar_ml/failures of an earlier build")
@check_files.options
@shared.as_json
def command(
    files: tuple[str, ...],
    part: str,
    replay: Path | None,
    include: tuple[Path, ...],
    std: str | None,
    flag: tuple[str, ...],
    packages: tuple[str, ...],
    database: Path | None,
    volatile: str,
    into: Path,
    patience: float,
    baseline: tuple[Path, ...],
    sarif: Path | None,
    junit: Path | None,
    markdown: Path | None,
    as_json: bool,
    no_races: bool,
    **options: Any,
) -> ExitCode:
    """Explore functions test_*() of C, C++, Cython and Python FILES under the engine.

    A test starts threads by the means of its language, and asserts. The engine decides every switch
    and every stale read, and reports data races, failed assertions, deadlocks, leaks and accesses
    to freed memory. A folder stands for its files test_*, *_test and check_*; of Python, check_*.

    A first file: "void test_it() { int n = 0; std::thread t([&] { n++; }); n++; t.join(); }",
    behind #include <thread>, has a data race, which the first execution shows.

    A comment "// check: mode=sc executions=5000" above a test ("# check:" in Cython and Python)
    gives it options, and so does a table [tool.pulsar_ml.check."ring_test.cpp::test_push"] of
    pyproject.toml.
    """
    from pulsar_ml.harness.functions.budget import NO_LIMIT, replacing, with_budget
    from pulsar_ml.harness.functions.check import check_function, most_executions
    from pulsar_ml.harness.functions.flags import package_flags
    from pulsar_ml.harness.testing.known import baseline_data, read_baseline, today

    known = read_baseline(baseline, today()) if baseline else None
    check_files.check_writable(sarif, junit, markdown)
    chosen = {name: value for name, value in options.items() if value not in (None, ())}
    if no_races:
        chosen["races"] = False
    flags = [*(f"-I{folder}" for folder in include), *([f"-std={std}"] if std else [])]
    build = {
        "into": into,
        "flags": [*flags, *package_flags(packages), *flag],
        "database": database,
        "volatile": volatile,
    }
    limits = child_limits(patience)
    found = Found(files, part, build)
    if replay is not None:
        return show_record(found, replay, limits)
    rows: list[dict[str, Any]] = []
    results: list[Checked] = []
    codes: list[ExitCode] = []
    try:
        with ProgressDisplay() as progress:
            for source, test, subject in found.tests(progress):
                wanted = replacing(test.options, chosen)
                wanted.pop("threads" if source.language == "python" else "semantics", None)
                count = Counted(progress)
                most = with_budget(wanted, most_executions(subject))["executions"]
                progress.begin(
                    f"{source.path.name}::{test.name}", most if most < NO_LIMIT else None
                )
                try:
                    result = check_function(
                        source.path, test, subject, limits=limits, on_batch=count, **wanted
                    )
                except KeyboardInterrupt:
                    progress.end()
                    name = f"{short_path(source.path)}::{test.name}"
                    echo(
                        f"{name}  interrupted: {count.executions:,} executions without a failure",
                        err=True,
                    )
                    codes.append(INTERRUPTED)
                    break
                except (LimitsError, NondeterminismError) as error:
                    codes.append(FAILED)
                    found.without_verdict += 1
                    progress.end()
                    echo(f"{short_path(source.path)}::{test.name}  no verdict: {error}", err=True)
                    continue
                progress.end()
                results.append(result)
                rows.append(as_row(result, known))
                codes.append(CLEAN if rows[-1]["known"] else CODES[result.verdict])
                if not as_json:
                    print_result(result, rows[-1])
                if result.interrupted:
                    codes.append(INTERRUPTED)
                    break
    except KeyboardInterrupt:  # while a file was built
        codes.append(INTERRUPTED)
    if not codes and not found.failed:
        echo(nothing_found(files, part), err=True)
        codes.append(NOTHING_EXERCISED)
    code = worst([*codes, *([FAILED] * bool(found.failed))])
    last = last_line(rows, found, known)
    check_files.write_files(rows, results, last, sarif, junit, markdown)
    if as_json:
        failed = [row["signature"] for row in rows if row["signature"]]
        print_json({"exit_code": code, "tests": rows, **baseline_data(failed, known)})
    else:
        echo(last)
    return code


def nothing_found(files: tuple[str, ...], part: str) -> str:
    """Say that the command line names no test, and why what looks like one is none."""
    from pulsar_ml.harness.functions.source import near_misses, test_files

    names = " ".join(files)
    found = list(test_files([Path(name.partition("::")[0]) for name in files]))
    if not found:
        return (
            f"{names}: no file test_*, *_test or check_* of C, C++ or Cython, and none check_* of "
            "Python, was found; name the file"
        )
    if part:
        return f"{names}: no function test_*() with {part!r} in its name was found"
    others = "; ".join(filter(None, map(near_misses, found[:1])))
    return f"{names}: no function test_*() was found" + (f"; {others}" if others else "")


@dataclass
class Counted:
    """The executions of the test under way, which the display of progress shows."""

    progress: ProgressDisplay
    executions: int = 0

    def __call__(self, executions: int) -> None:
        self.executions = executions
        self.progress.update(executions)


@dataclass
class Found:
    """The tests of the command line. A file that cannot be built costs the others nothing."""

    files: tuple[str, ...]
    part: str
    build: dict[str, Any]
    failed: int = 0
    without_verdict: int = 0

    def tests(
        self, progress: ProgressDisplay | None = None
    ) -> Iterator[tuple[TestSource, TestFunction, Subject | PythonTest]]:
        from pulsar_ml.errors import BuildError
        from pulsar_ml.harness.functions.check import chosen_tests, tests_of
        from pulsar_ml.harness.functions.source import read_source, test_files

        for name in self.files:
            path, _, test = name.partition("::")
            for file in test_files([Path(path)]):
                source = read_source(file)
                tests = [
                    each for each in chosen_tests(source, test or None) if self.part in each.name
                ]
                if not tests:
                    continue
                if progress:
                    progress.begin(f"building {file.name}")
                try:
                    subjects = tests_of(source, **self.build)
                except BuildError as error:
                    self.failed += 1
                    echo(f"Failed: {error}", err=True)
                    continue
                for each in tests:
                    if each.name in subjects:  # else the preprocessor leaves it out
                        yield source, each, subjects[each.name]

    def object_again(self, failure: Failure) -> Subject | None:
        """Return the subject of a record about an object's methods; None for another record.

        Raises UsageError unless the command line names the files whose code it runs.
        """
        from pulsar_ml.harness.functions.build_again import build_again
        from pulsar_ml.harness.pythreads.object_recipe import files_of
        from pulsar_ml.harness.subjects.recipe import Recipe

        recipe = Recipe.from_text(failure.recipe)
        if recipe.call != "explore_object":
            return None
        named = {Path(name.partition("::")[0]).resolve() for name in self.files}
        for file in files_of(recipe):
            if file.resolve() not in named:
                raise UsageError(
                    f"the record runs {short_path(file)}, which the command does not name; if you "
                    f"trust it, name it: check {short_path(file)} --replay RECORD"
                )
        return build_again(failure)


def as_row(result: Checked, known: Baseline | None = None) -> dict[str, Any]:
    """The result of a test for --json; a failure's record is written."""
    from pulsar_ml.harness.testing.known import short_signature
    from pulsar_ml.harness.testing.records import keep_failure

    signature = short_signature(result.failure) if result.failure else ""
    record = keep_failure(result.failure, Path()) if result.failure else None
    return {
        "file": short_path(result.file),
        "test": result.test.name,
        "line": result.test.line,
        "verdict": result.verdict,
        "executions": result.exploration.executions,
        "classes": result.exploration.statistics["classes"],
        "cut": result.exploration.statistics["cut"],
        "discarded": result.exploration.statistics["discarded"],
        "bounds": dict(result.exploration.bounds),
        "remarks": list(result.exploration.remarks),
        "message": result.failure.message if result.failure else "",
        "kind": result.failure.kind if result.failure else "",
        "record": str(record) if record else None,
        "signature": signature,
        "known": known.note(signature) if known and known.is_known(signature) else "",
    }


def print_result(result: Checked, row: dict[str, Any]) -> None:
    name = f"{row['file']}::{row['test']}"
    echo(f"{name}  {result.describe()}")
    for remark in row["remarks"]:
        if remark not in result.text:
            echo(f"  {remark}")
    if result.failure is not None:
        echo(result.text)
        if row["known"]:
            echo(f"  {row['signature']} is {row['known']}")
        echo(f"  again: {command_line('check', name, '--replay', row['record'])}\n")


def last_line(rows: list[dict[str, Any]], found: Found, known: Baseline | None = None) -> str:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in CODES}
    words = [
        f"{counts['clean']} clean",
        *([f"{counts['violation']} failed"] * bool(counts["violation"])),
        *([f"{counts['nothing_exercised']} exercised nothing"] * bool(counts["nothing_exercised"])),
        *([f"{found.without_verdict} without a verdict"] * bool(found.without_verdict)),
        *([f"{counted(found.failed, 'file')} not built"] * bool(found.failed)),
    ]
    line = ", ".join(words)
    if known is not None:
        line += f"; {known.sentence([row['signature'] for row in rows if row['signature']])}"
    return line


def show_record(found: Found, record: Path, limits: Limits) -> ExitCode:
    from pulsar_ml.campaign.local.failures import traced
    from pulsar_ml.harness.functions.check import replayed_text
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.input_files import bounded_text

    failure = Failure.from_text(bounded_text(record, "the record"))
    restart_under(failure.hash_seed)
    if failure.recipe and (built := found.object_again(failure)) is not None:
        again, text = traced(failure, built, None, limits)
        return shown(again, text)
    for _, test, subject in found.tests():
        if test.name == failure.subject:
            also = cast("tuple[str, ...]", test.options.get("also", ()))
            return shown(*replayed_text(failure, subject, limits, also))
    raise UsageError(f"{record} is of the test {failure.subject!r}, which none of the files has")


def shown(again: Replayed, text: str) -> ExitCode:
    """Print the text of a replay; return the exit code."""
    from pulsar_ml.campaign.local.failures import exit_code_of

    echo(text)
    if again.proves_nothing:
        echo(f"no verdict: {again.verdict()}", err=True)
    return exit_code_of(again)
