"""``pulsar-ml check``: functions of C, C++, Cython and Python files as tests under the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.find import check_files
from pulsar_ml.cli.options import child_limits
from pulsar_ml.cli.output import print_json
from pulsar_ml.errors import UsageError
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
    from pulsar_ml.harness.budgets.slices import Course
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
@shared.budget("tests")
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
    budget: float | None,
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
    from pulsar_ml.cli.find.check_tests import (
        TestUnderWay,
        budget_words,
        run_all,
        run_in_slices,
    )
    from pulsar_ml.harness.budgets.slices import Course
    from pulsar_ml.harness.functions.budget import BUDGETS, replacing
    from pulsar_ml.harness.functions.check import explore_test
    from pulsar_ml.harness.functions.flags import package_flags
    from pulsar_ml.harness.testing.known import (
        baseline_data,
        is_known_by,
        read_baseline,
        today,
    )

    if budget and any(options[name] for name in BUDGETS):
        raise UsageError("--budget, --executions and --seconds are budgets; give one of them")
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
    begun: list[TestUnderWay] = []

    def report(test: TestUnderWay, result: Checked) -> None:
        results.append(result)
        rows.append(as_row(result, known, test.course if budget else None))
        codes.append(CLEAN if rows[-1]["known"] else CODES[result.verdict])
        if not as_json:
            print_result(result, rows[-1])

    try:
        with ProgressDisplay() as progress:
            if budget:
                found.order(into, include)

            def tests() -> Iterator[TestUnderWay]:
                for source, test, subject in found.tests(progress):
                    wanted = replacing(test.options, chosen)
                    wanted.pop("threads" if source.language == "python" else "semantics", None)
                    course = Course(explore_test, is_known_by(known))
                    yield TestUnderWay(
                        source, test, subject, wanted, limits, progress, report, course
                    )

            if budget:
                run_in_slices(tests(), begun, found.count, budget)
            else:
                run_all(tests(), begun)
    except KeyboardInterrupt:  # of a test, or while a file was built
        codes.append(INTERRUPTED)
    found.without_verdict = sum(bool(test.error) for test in begun)
    codes += [FAILED] * found.without_verdict
    missed = found.missed([(test.source, test.test) for test in begun]) if budget else []
    codes += [NOTHING_EXERCISED] * bool(missed)
    if not codes and not found.failed:
        echo(nothing_found(files, part), err=True)
        codes.append(NOTHING_EXERCISED)
    code = worst([*codes, *([FAILED] * bool(found.failed))])
    last = last_line(rows, found, known, missed)
    if budget:
        found.keep_digests(into, missed)
        last += f"; {budget_words(budget, begun, missed)}"
    against = known is not None
    check_files.write_files(rows, results, last, sarif, junit, markdown, missed, against=against)
    if as_json:
        failed = [name for row in rows for name in signatures(row)]
        more = {"not_run": missed} if budget else {}
        print_json({"exit_code": code, "tests": rows, **more, **baseline_data(failed, known)})
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
class Found:
    """The tests of the command line. A file that cannot be built costs the others nothing."""

    files: tuple[str, ...]
    part: str
    build: dict[str, Any]
    without_verdict: int = 0
    read: list[tuple[TestSource, list[TestFunction]]] | None = None
    digests: dict[str, str] = field(default_factory=dict)
    not_built: set[Path] = field(default_factory=set)
    left_out: set[tuple[Path, str]] = field(default_factory=set)

    @property
    def failed(self) -> int:
        """The number of files that were not built."""
        return len(self.not_built)

    def sources(self) -> list[tuple[TestSource, list[TestFunction]]]:
        """The files of the command line with their chosen tests, in the order of the work."""
        from pulsar_ml.harness.functions.check import chosen_tests
        from pulsar_ml.harness.functions.source import read_source, test_files

        if self.read is None:
            self.read = []
            for name in self.files:
                path, _, test = name.partition("::")
                for file in test_files([Path(path)]):
                    source = read_source(file)
                    tests = [
                        each
                        for each in chosen_tests(source, test or None)
                        if self.part in each.name
                    ]
                    self.read += [(source, tests)] * bool(tests)
        return self.read

    @property
    def count(self) -> int:
        return sum(len(tests) for _, tests in self.sources())

    def order(self, into: Path, folders: tuple[Path, ...]) -> None:
        """Take the sources first that changed since a budget reached all their tests."""
        from pulsar_ml.harness.budgets.changed import changed_first

        read = self.sources()
        order, self.digests = changed_first([source.path for source, _ in read], into, folders)
        self.read = [read[at] for at in order]

    def keep_digests(self, into: Path, missed: list[str]) -> None:
        """Remember the sources whose tests all got a slice."""
        from pulsar_ml.harness.budgets.changed import name_of, write_digests

        left = {name.rpartition("::")[0] for name in missed}
        write_digests(
            into,
            {
                name_of(source.path): self.digests[name_of(source.path)]
                for source, _ in self.sources()
                if short_path(source.path) not in left and source.path not in self.not_built
            },
        )

    def missed(self, begun: list[tuple[TestSource, TestFunction]]) -> list[str]:
        """The tests that were not begun, though their files may be built."""
        done = {(source.path, test.name) for source, test in begun} | self.left_out
        return [
            f"{short_path(source.path)}::{test.name}"
            for source, tests in self.sources()
            for test in tests
            if (source.path, test.name) not in done and source.path not in self.not_built
        ]

    def tests(
        self, progress: ProgressDisplay | None = None
    ) -> Iterator[tuple[TestSource, TestFunction, Subject | PythonTest]]:
        from pulsar_ml.errors import BuildError
        from pulsar_ml.harness.functions.check import tests_of

        for source, tests in self.sources():
            if progress:
                progress.begin(f"building {source.path.name}")
            try:
                subjects = tests_of(source, **self.build)
            except BuildError as error:
                self.not_built.add(source.path)
                echo(f"Failed: {error}", err=True)
                continue
            for each in tests:
                if each.name in subjects:
                    yield source, each, subjects[each.name]
                else:  # the preprocessor leaves it out
                    self.left_out.add((source.path, each.name))

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


def signatures(row: dict[str, Any]) -> list[str]:
    """The signatures of a test's failure, and of those that it went on behind."""
    return [name for name in dict.fromkeys((row["signature"], *row["met"])) if name]


def as_row(
    result: Checked, known: Baseline | None = None, course: Course | None = None
) -> dict[str, Any]:
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
        "met": {short_signature(met.failure): met.executions for met in result.exploration.met},
        **({"budget": course.as_data()} if course else {}),
    }


def print_result(result: Checked, row: dict[str, Any]) -> None:
    name = f"{row['file']}::{row['test']}"
    echo(f"{name}  {result.describe()}")
    if "budget" in row:
        echo(f"  {row['budget']['sentence']}")
    for remark in row["remarks"]:
        if remark not in result.text:
            echo(f"  {remark}")
    if result.failure is not None:
        echo(result.text)
        if row["known"]:
            echo(f"  {row['signature']} is {row['known']}")
        echo(f"  again: {command_line('check', name, '--replay', row['record'])}\n")


def last_line(
    rows: list[dict[str, Any]],
    found: Found,
    known: Baseline | None = None,
    missed: list[str] | None = None,
) -> str:
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in CODES}
    old = sum(bool(row["known"]) for row in rows)
    new = counts["violation"] - old
    words = [
        f"{counts['clean']} clean",
        *([f"{new} failed"] * bool(new)),
        *([f"{old} with {'a known failure' if old == 1 else 'known failures'}"] * bool(old)),
        *([f"{counts['nothing_exercised']} exercised nothing"] * bool(counts["nothing_exercised"])),
        *([f"{len(missed)} not run"] if missed else []),
        *([f"{found.without_verdict} without a verdict"] * bool(found.without_verdict)),
        *([f"{counted(found.failed, 'file')} not built"] * bool(found.failed)),
    ]
    line = ", ".join(words)
    if known is not None:
        line += f"; {known.sentence([name for row in rows for name in signatures(row)])}"
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
