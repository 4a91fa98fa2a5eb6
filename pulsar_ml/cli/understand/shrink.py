"""``pulsar-ml shrink``: a failure, or all failures of a run, made smaller."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from pulsar_ml.campaign.shrink.shrink_run import (
    Processes,
    Witness,
    shrink_all,
    task_of,
    witnesses,
)
from pulsar_ml.campaign.shrink.shrinking import Task
from pulsar_ml.campaign.shrink.shrunk import (
    CRASHED,
    FOUND,
    REFUSED,
    SMALLER,
    Shrunk,
    Size,
    record_path,
)
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.trial import LEAK
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import console, print_json
from pulsar_ml.distributed.driver import check_spark, spark_session
from pulsar_ml.distributed.shrink import SparkShrinker
from pulsar_ml.errors import UsageError, naming
from pulsar_ml.exit_codes import (
    CLEAN,
    FAILED,
    INTERRUPTED,
    NOTHING_EXERCISED,
    SEARCH,
    ExitCode,
)
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.failure import WRONG_ANSWERS
from pulsar_ml.processors import processor_count
from pulsar_ml.terminal.command_line import (
    DEFAULT_SUITES,
    replay_command,
    short_path,
)
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay
from pulsar_ml.terminal.stop_request import StopRequest
from pulsar_ml.terminal.tables import print_table
from pulsar_ml.terminal.trust import OPTION, check_trusted
from pulsar_ml.wording import counted

SHOWN = 50  # lines of the table; the files hold all
EXECUTIONS = 1_000_000
OPTIONAL = ("Steps", "Decisions", "Suite")


@new_command(
    "shrink",
    examples=(
        "shrink runs/explore/20250102-030405/refcount-17.json",
        "shrink runs/ID --runner pool",
        "shrink runs/ID --executions 20000000 --signature 0123456789ab",
    ),
    exit_codes=SEARCH,
)
@click.argument("target", type=click.Path(path_type=Path), metavar="RECORD|RUN")
@shared.suites(None)
@shared.module("the failure's")
@shared.mutant("the failure's; for a record")
@shared.trust
@option(
    "--signature",
    "only",
    multiple=True,
    metavar="ID",
    group=shared.PROGRAMS,
    help="Signature in a run. Repeatable.  [default: all]",
)
@shared.executions(None, f"[default: {EXECUTIONS:,} for each failure of a run]")
@shared.ignore
@shared.sandbox()
@shared.runner("spark", "pool", default="spark")
@shared.master("local[*]")
@shared.master_seconds
@shared.conf
@shared.environment
@shared.workers
@shared.as_json
def command(
    target: Path,
    suites: str | None,
    module: str | None,
    mutant: str | None,
    trust: bool,
    only: tuple[str, ...],
    executions: int | None,
    ignore: tuple[str, ...],
    sandbox: bool,
    patience: float,
    runner: str,
    master: str,
    master_seconds: float,
    conf: tuple[str, ...],
    environment: Path | None,
    workers: int | None,
    as_json: bool,
) -> ExitCode:
    """Make a failure of the engine, or each failure of a run, smaller.

    RECORD, a failure that explore or hunt wrote, is replaced by the smaller failure. Exit code 1
    then means that it still fails.

    RUN is a results directory. Each signature's failure is made smaller; for failures of real
    threads the engine looks for the same outcome. Results are confirmed, then kept in RUN/shrunk
    and shown by reports. The records stay as they are. Exit code 0 then means that all were tried,
    3 that the run has no failure.
    """
    module = None if module is None else shared.module_path(module)
    leaks = LEAK not in ignore
    if not target.is_dir():
        limits = shared.sandbox_limits(sandbox, patience)
        return shrink_record(
            target, suites, module, mutant, executions, limits, trust=trust, leaks=leaks
        )
    settings = shared.spark_settings(conf)
    if runner == "spark":
        check_spark(master, environment)
    run = target
    copy = open_run(run)
    found = chosen(witnesses(copy), only, run)
    if not leaks:
        found = [one for one in found if one.invariant != LEAK]
    registry = suites or copy.facts["runner"].get("registry") or DEFAULT_SUITES
    check_trusted(run / "run.json", {"--suites": registry}, trust=trust or bool(suites))
    most = executions or EXECUTIONS

    def task(witness: Witness) -> Task:
        return task_of(
            witness,
            registry=registry,
            module=module or "",
            executions=most,
            trust=trust,
            leaks=leaks,
        )

    store = RunStore.reopen(run)
    with ExitStack() as stack:
        stack.callback(store.close)
        store.tidy()
        wanted = [one for one in found if not (one.state and one.state.covers(one.record, most))]
        states = {one.signature: one for one in found}
        complete = True
        if wanted:
            shrinker: Processes | SparkShrinker
            if runner == "pool":
                shrinker = Processes(workers or processor_count())
            else:
                shrinker = SparkShrinker(
                    spark_session(
                        stack,
                        master,
                        settings,
                        suites=registry,
                        environment=environment,
                        seconds=master_seconds,
                    )
                )
            with StopRequest() as stop:
                stop.install()
                complete = shrink_failures(store, wanted, shrinker, task, states, stop)
    show(
        run, list(states.values()), len(found) - len(wanted), registry, trust=trust, as_json=as_json
    )
    return exit_code(list(states.values()), complete)


def shrink_record(
    path: Path,
    suites: str | None,
    module: str | None,
    mutant: str | None,
    executions: int | None,
    limits: Limits | None,
    *,
    trust: bool,
    leaks: bool,
) -> ExitCode:
    """Replaces the failure in a file by a smaller one."""
    # Imported here: they load the engine.
    from pulsar_ml.campaign.local import failures
    from pulsar_ml.cli.understand.opened import open_failure

    opened = open_failure(path, suites, module, mutant, trust=trust)
    before, subject, judge = opened.failure, opened.subject, opened.judge
    if not leaks:
        if before.kind == LEAK:
            raise UsageError(f"{path} is about a leak, which --ignore {LEAK} leaves out")
        before = replace(before, leaks=False)
    if before.recipe and before.kind == WRONG_ANSWERS and not subject.judge:
        raise UsageError(
            f"{path} does not name the model that refused the answers; define the model at the top "
            "of a Python file that can be imported, and record the failure again"
        )
    after = failures.shrink_failure(before, subject, limits, judge, executions)
    with naming(path):
        path.write_text(after.to_json() + "\n", encoding="utf-8")
    again = failures.replay_failure(after, subject, judge, limits)
    echo(after.summary(again))
    return failures.exit_code_of(again)


def chosen(found: Sequence[Witness], only: Sequence[str], run: Path) -> list[Witness]:
    """The failures with the requested signatures, or all. UsageError for an unknown signature."""
    known = {one.signature: one for one in found}
    for signature in only:
        if signature not in known:
            raise UsageError(f"{run} has no record with the signature {signature!r:.80}")
    return [known[signature] for signature in dict.fromkeys(only)] if only else list(found)


def shrink_failures(
    store: RunStore,
    wanted: Sequence[Witness],
    shrinker: Processes | SparkShrinker,
    task: Callable[[Witness], Task],
    states: dict[str, Witness],
    stop: StopRequest,
) -> bool:
    """Shrinks the failures, with progress; False when it was stopped before the end."""
    outcomes: Counter[str] = Counter()
    total = counted(len(wanted), "failure")
    with ProgressDisplay() as progress:
        progress.begin(total, len(wanted), f"{total}, {shrinker.slots} at once")

        def on_done(witness: Witness) -> None:
            assert witness.state is not None
            states[witness.signature] = witness
            outcomes[witness.state.shrunk.outcome] += 1
            counts = ", ".join(f"{name} {count:,}" for name, count in sorted(outcomes.items()))
            done = sum(outcomes.values())
            text = f"{done:,} of {total}: {counts}"
            progress.update(done, text)
            if done == len(wanted):
                progress.message(text)

        return shrink_all(store, wanted, shrinker, task, stopped=stop.requested, on_done=on_done)


def show(
    run: Path,
    found: Sequence[Witness],
    earlier: int,
    registry: str,
    *,
    trust: bool,
    as_json: bool,
) -> None:
    """Prints a line for each failure, before and after, and the commands to replay them."""
    known = [(one, one.state.shrunk) for one in found if one.state is not None]
    if as_json:
        print_json({"failures": [line_data(run, *pair) for pair in known]})
        return
    screen = console()
    table = Table(title="Failures before and after", title_justify="left")
    for name in ("Signature", "Suite", "Invariant"):
        table.add_column(name, overflow="fold", min_width=12 if name == "Signature" else None)
    for name in ("Threads", "Operations", "Decisions", "Steps"):
        table.add_column(name, justify="right")
    table.add_column("Outcome", overflow="fold")
    for one, shrunk in known[:SHOWN]:
        table.add_row(
            one.signature,
            Text(one.suite),
            Text(one.invariant),
            *(change(shrunk, name) for name in ("threads", "operations", "decisions", "steps")),
            Text(shrunk.outcome),
        )
    if known:
        print_table(screen, table, OPTIONAL)
    for one, shrunk in known[:SHOWN]:
        if shrunk.message:
            reason = f"  {one.signature} {shrunk.outcome}: {shrunk.message}"
            screen.print(reason, soft_wrap=True, markup=False)
        if shrunk.record:
            words = f" {OPTION}" if trust else ""
            line = replay_command(record_path(run, one.signature), registry) + words
            screen.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)
    if len(known) > SHOWN:
        screen.print(f"and {len(known) - SHOWN:,} more in {short_path(run)}/shrunk")
    smaller = sum(bool(shrunk.record) for _, shrunk in known)
    text = f"{counted(len(found), 'failure')}: {smaller:,} smaller than recorded"
    text += f", {earlier:,} tried before" if earlier else ""
    screen.print(
        f"{text}; in {short_path(run)}/shrunk" if known else text, soft_wrap=True, highlight=False
    )


def change(shrunk: Shrunk, name: str) -> str:
    """A number before and after, or one number when it did not change."""
    before, after = (getattr(size, name, 0) for size in (shrunk.before, shrunk.after))
    if shrunk.outcome == FOUND and not before:
        return f"{after:,}"  # unknown for real threads
    if shrunk.outcome in (SMALLER, FOUND) and before != after:
        return f"{before:,} → {after:,}"
    return f"{before:,}" if shrunk.before else "-"


def line_data(run: Path, witness: Witness, shrunk: Shrunk) -> dict[str, Any]:
    def data(size: Size | None) -> dict[str, int] | None:
        return None if size is None else asdict(size)

    return {
        "signature": witness.signature,
        "suite": witness.suite,
        "invariant": witness.invariant,
        "outcome": shrunk.outcome,
        "message": shrunk.message,
        "before": data(shrunk.before),
        "after": data(shrunk.after),
        "record": str(record_path(run, witness.signature)) if shrunk.record else None,
    }


def exit_code(found: Sequence[Witness], complete: bool) -> ExitCode:
    if not complete:
        return INTERRUPTED
    if not found:
        return NOTHING_EXERCISED
    bad = any(one.state is None or one.state.shrunk.outcome in (CRASHED, REFUSED) for one in found)
    return FAILED if bad else CLEAN
