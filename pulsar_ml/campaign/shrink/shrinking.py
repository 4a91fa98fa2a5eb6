"""Shrinks one failure in a process of its own, so that a crash hurts no other task.

A failure of the engine is shrunk with a larger budget than a trial has. For a failure of real
threads the engine looks for the same outcome, which gives a small failure that replays. A result
counts only after it was reproduced.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pulsar_ml.campaign.boot import boot_command
from pulsar_ml.campaign.shrink.shrunk import (
    AS_SMALL,
    CRASHED,
    FOUND,
    NOT_FOUND,
    NOTHING,
    REFUSED,
    SMALLER,
    Shrunk,
    Size,
)
from pulsar_ml.campaign.trial.crashed_trial import INVARIANTS
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import (
    CHECKED,
    PRODUCT,
    find_subject,
    load_native,
    select_mutant,
)
from pulsar_ml.errors import PulsarMlError, UsageError
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.descendants import die_with_parent
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.terminal.hash_seed import environment
from pulsar_ml.terminal.trust import check_trusted

if TYPE_CHECKING:
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.subjects.subject import Subject

LIMITS = Limits(wall=150.0, cpu=None, memory=2 << 30, address_space=16 << 30)
MODE = "c11"  # the memory model in which the engine hunts failures of real threads


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One failure to shrink.

    Attributes:
        suite, registry: the suite, and the module with SUITES that has it.
        record: a failure of the engine or a replay record, as JSON.
        start: an earlier smaller failure to start from; "" for none.
        executions: largest number of executions, roughly.
        module: the checked module to use instead of the record's; "" for the record's, and for real
            threads on the product for the product's.
        trust: True when a module that the record names may be loaded, wherever it is from.
        leaks: False when blocks that are never freed are no failure.
    """

    suite: str
    registry: str
    record: str
    start: str = ""
    executions: int
    module: str = ""
    trust: bool = False
    leaks: bool = True
    limits: Limits = LIMITS

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Task:
        content = json.loads(text)
        return Task(**{**content, "limits": Limits(**content["limits"])})


def apart(
    task: Task, started: Callable[[subprocess.Popen[str]], object] = lambda process: None
) -> Shrunk:
    """Run a task in a new process, which ends with the calling thread.

    ``started`` gets the process; any thread may kill it, and then its task has no result.
    """
    process = subprocess.Popen(
        boot_command(__name__, os.getpid()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="surrogateescape",
        env={**environment(hash_seed_of(task.record)), "OPENBLAS_NUM_THREADS": "1"},
        start_new_session=True,  # the parent handles Ctrl-C of the terminal
    )
    started(process)
    output, printed = process.communicate(task.to_json())
    if process.returncode:
        how = f"exit status {process.returncode}"
        if process.returncode < 0:
            how = signal.Signals(-process.returncode).name
        last = [line.strip() for line in printed.splitlines() if line.strip()][-1:]
        return Shrunk(
            CRASHED, f"its process ended with {how}{''.join(f': {line}' for line in last)}"
        )
    return Shrunk.from_json(output.splitlines()[-1])


def hash_seed_of(record: str) -> str:
    """Return the hash seed of a record of the engine; "" for another one, or a damaged one."""
    try:
        content = json.loads(record)
    except ValueError:
        return ""
    return str(content.get("hash_seed", "")) if isinstance(content, dict) else ""


def main(parent: int) -> None:
    """Read a task from standard input; print its result as the last line."""
    die_with_parent()
    if os.getppid() == parent:
        print(f"\n{done(Task.from_json(sys.stdin.read())).to_json()}", flush=True)


def done(task: Task) -> Shrunk:
    """Run a task; the code under test runs in a child process."""
    from pulsar_ml.harness.search.failure import KIND, Failure

    try:
        suite = suite_of(task)
        if f'"{KIND}"' in task.record:
            return of_engine(task, suite, Failure.from_text(task.record))
        return of_threads(task, suite, ReplayRecord.from_json(task.record))
    except LostError as crash:
        return Shrunk(CRASHED, crash.message)
    except (PulsarMlError, ImportError) as error:
        return Shrunk(REFUSED, str(error))


def suite_of(task: Task) -> Suite:
    try:
        suite = load_native(task.registry).SUITES.get(task.suite)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"there are no suites in {task.registry}: {error}") from None
    if not isinstance(suite, Suite):
        raise UsageError(f"{task.registry} has no suite {task.suite!r}")
    return suite


def of_engine(task: Task, suite: Suite, failure: Failure) -> Shrunk:
    from pulsar_ml.campaign.trial.judging import judge_of
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.search.sandbox import call
    from pulsar_ml.harness.search.shrink import shrink

    if failure.ended_process:
        return Shrunk(
            NOTHING, f"{failure.kind}: it is reproduced from its seed, in a child process"
        )
    named = {"--module": failure.module}
    check_trusted("its record", named, trust=task.trust or bool(task.module))
    if task.module:
        failure = replace(failure, module=task.module)
    if not task.leaks:
        failure = replace(failure, leaks=False)
    subject = subject_of(failure.subject, failure.module or CHECKED, failure.mutant)
    if failure.build_id != str(subject.build_id):
        return another_build(failure.build_id, subject)
    judge = judge_of(suite.model)

    def work() -> Shrunk:
        first = failure.replay(subject, judge)
        before = size_of(failure, len(first.trace))
        if not first.exact:
            return Shrunk(REFUSED, first.verdict(), before=before)
        start = Failure.from_text(task.start) if task.start else failure
        small = shrink(start, subject, budget=task.executions, judge=judge)
        again = small.replay(subject, judge)
        after = size_of(small, len(again.trace))
        if not again.exact:
            return Shrunk(
                REFUSED, f"its smaller form does not replay: {again.verdict()}", before=before
            )
        if after.order >= before.order:
            return Shrunk(AS_SMALL, before=before, after=before)
        return Shrunk(SMALLER, record=small.to_json(), before=before, after=after)

    return call(work, limits=task.limits)


def of_threads(task: Task, suite: Suite, record: ReplayRecord) -> Shrunk:
    from pulsar_ml.campaign.shrink.hunt import NO_OUTCOME, search
    from pulsar_ml.campaign.trial.judging import judge_of
    from pulsar_ml.harness.search.failure import Failure
    from pulsar_ml.harness.search.sandbox import call

    if record.invariant in (*NO_OUTCOME, *INVARIANTS.values()):
        return Shrunk(
            NOTHING,
            f"real threads: {record.invariant} is not an outcome that the engine can look for",
        )
    module = task.module or (CHECKED if record.module == PRODUCT else "")
    if not module:
        return Shrunk(
            REFUSED, f"real threads on {record.module}: --module names the checked module"
        )
    calls = record.threads * record.operations
    before = Size(record.threads, calls, 0, 0)
    if task.start:  # an earlier result: a failure of the engine to start from
        small = of_engine(
            replace(task, record=task.start, start="", module=task.module or module),
            suite,
            Failure.from_text(task.start),
        )
        if small.outcome in (SMALLER, AS_SMALL):
            return replace(small, outcome=FOUND, record=small.record or task.start, before=before)
        return small
    subject = subject_of(suite.subject, module, record.mutant)

    def work() -> Shrunk:
        found = search(
            subject, suite, record, mode=MODE, executions=task.executions, leaks=task.leaks
        )
        if found.failure is None:
            effort = f"{found.executions:,} executions of {found.windows:,} windows of its program"
            return Shrunk(NOT_FOUND, f"{record.invariant} was not broken in {effort}")
        failure = replace(found.failure, module=module, mutant=record.mutant)
        again = failure.replay(subject, judge_of(suite.model))
        if not again.exact:
            return Shrunk(REFUSED, f"the failure found does not replay: {again.verdict()}")
        after = size_of(failure, len(again.trace))
        return Shrunk(FOUND, record=failure.to_json(), before=before, after=after)

    return call(work, limits=task.limits)


def subject_of(name: str, module: str, mutant: str | None) -> Subject:
    import pulsar_ml.harness.engine  # noqa: F401  (a checked module calls its functions)

    native = load_native(module)
    select_mutant(native, mutant)
    return find_subject(native, Suite(name=name, subject=name, summary=""))


def another_build(build_id: str, subject: Subject) -> Shrunk:
    return Shrunk(REFUSED, f"it is of build {build_id}, and this is build {subject.build_id}")


def size_of(failure: Failure, steps: int) -> Size:
    program = Program.from_json(failure.program)
    calls = [len(calls) for calls in program.threads]
    return Size(sum(map(bool, calls)), sum(calls), len(failure.decisions), steps)
