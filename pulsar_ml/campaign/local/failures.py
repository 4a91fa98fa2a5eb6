"""Failures of the engine as files: read, made again step by step, made smaller."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pulsar_ml.campaign.local.inevitability import Share, curve_lines, shares
from pulsar_ml.campaign.trial.judging import judge_of
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, load_native, select_mutant
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.exit_codes import CLEAN, FAILED, VIOLATION, ExitCode
from pulsar_ml.harness.building.unseen import warn_of_unseen_code
from pulsar_ml.harness.engine import Explorer  # noqa: F401  (before checked modules are loaded)
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.replays.view import View, view_text
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.failure import Failure, Replayed
from pulsar_ml.harness.search.sandbox import call, replay_lost, watch
from pulsar_ml.harness.search.shrink import shrink
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.input_files import bounded_text
from pulsar_ml.terminal.progress import ProgressDisplay

T = TypeVar("T")
EVERY_STEP = View(all_steps=True)
NOT_JUDGED = "continuations: not judged; one ends its process, and no other is known"


def checked_subject(name: str, module: str = CHECKED, mutant: str | None = None) -> Subject:
    """A subject of a checked module: an importable name, or the path of a shared object.

    Raises UsageError when the module has no such subject or mutant.
    """
    native = load_native(module)
    if module != CHECKED and native.__file__:
        warn_of_unseen_code(Path(native.__file__))
    select_mutant(native, mutant)
    subjects: Mapping[str, Subject] = getattr(native, "SUBJECTS", {})
    if name not in subjects:
        known = ", ".join(subjects) or "none"
        raise UsageError(f"the checked module {module} has no subject {name!r}; it has: {known}")
    return subjects[name]


def read_failure(path: Path) -> Failure:
    """The failure in a file. BadRecordError names the file."""
    text = bounded_text(path, "the failure")
    try:
        return Failure.from_text(text)
    except BadRecordError as error:
        raise BadRecordError(f"{path}: {error}") from None


def subject_of(failure: Failure, module: str | None, mutant: str | None) -> Subject:
    """The subject of a failure: in its own checked module or another one, or built again."""
    if module is not None:
        return checked_subject(failure.subject, module, mutant)
    if failure.recipe:
        if mutant is not None:
            raise UsageError(f"{failure.subject} is built from a file, which has no mutants")
        from pulsar_ml.harness.functions.build_again import build_again

        return build_again(failure)
    if not failure.module and Program.from_json(failure.program).is_test:
        raise UsageError(
            f"the record is of the test {failure.subject!r} and does not name its file; name it: "
            "pulsar-ml check FILE --replay RECORD, or pytest FILE --replay RECORD"
        )
    return checked_subject(failure.subject, failure.module or CHECKED, mutant or failure.mutant)


def judge_for(suites: Mapping[str, Suite], failure: Failure) -> Judge | None:
    """The judge of the first suite about the failure's subject that has a model.

    None for a subject that was built from a file: it has its own judge.
    """
    if failure.recipe:
        return None
    models = [
        suite.model for suite in suites.values() if suite.subject == failure.subject and suite.model
    ]
    return judge_of(models[0]) if models else None


def guarded(work: Callable[[], T], limits: Limits | None) -> T:
    """Returns what ``work`` returns; runs it in a child process when there are limits."""
    return work() if limits is None else call(work, limits=limits)


def replay_failure(
    failure: Failure, subject: Subject, judge: Judge | None, limits: Limits | None
) -> Replayed:
    """Makes a failure again, once. One that lost its process always runs in a child process."""
    if failure.ended_process:
        return replay_lost(failure, subject, limits=limits)
    return guarded(lambda: failure.replay(subject, judge), limits)


def exit_code_of(again: Replayed) -> ExitCode:
    """The exit code of a command that makes a failure again: 0 only for changed code."""
    if again.failure is not None:
        return VIOLATION
    return FAILED if again.proves_nothing else CLEAN


def traced(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    limits: Limits | None,
    view: View = EVERY_STEP,
) -> tuple[Replayed, str]:
    """Makes a failure again, once; returns the result and its text, as ``view`` wants it.

    The text is made in the process of the replay, which alone knows the names of Python's
    variables. The steps of Python code, which other processes cannot read, are left out of the
    result.
    """
    if failure.ended_process:
        again = replay_lost(failure, subject, limits=limits)
        return again, view_text(failure, again, subject, view)

    def work() -> tuple[Replayed, str]:
        again = failure.replay(subject, judge)
        text = view_text(failure, again, subject, view, judge)
        return (replace(again, trace=[], checked=()) if subject.needs_gil else again), text

    return guarded(work, limits)


def inevitability_of(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    limits: Limits | None,
    samples: int,
    on_share: Callable[[int, int], object] = lambda done, switches: None,
) -> tuple[Share, ...] | None:
    """The curve of the continuations that fail; None when one of them ends its process.

    ``on_share`` gets the number of switches that were judged and that of all.
    """
    if failure.ended_process:
        return None
    found: list[tuple[Share, ...]] = []

    def work(send: Callable[[object], object]) -> None:
        send(
            shares(
                failure,
                subject,
                judge,
                samples=samples,
                on_share=lambda done, switches: send([done, switches]),
            )
        )

    def on_message(message: Any) -> None:
        if isinstance(message, list):
            on_share(*message)
        else:
            found.append(message)

    try:
        if limits is None:
            work(on_message)
        else:
            watch(work, on_message, limits=limits)
    except LostError:
        return None
    return found[0]


def shown_inevitability(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    limits: Limits | None,
    samples: int,
    progress: ProgressDisplay,
) -> tuple[Share, ...] | None:
    """Return the curve of :func:`inevitability_of`, with the progress of a long one."""
    title = f"{failure.subject}: continuations"
    progress.begin(title, 1, f"{title}: {samples} behind each switch")
    try:
        return inevitability_of(
            failure,
            subject,
            judge,
            limits,
            samples,
            lambda done, switches: progress.update(
                done / switches, f"{title} behind {done:,} of {switches:,} switches"
            ),
        )
    finally:
        progress.end()


def curve_text(curve: Sequence[Share] | None) -> str:
    """The curve as text, or the reason for having none."""
    return NOT_JUDGED if curve is None else "\n".join(curve_lines(curve))


def shrink_failure(
    failure: Failure,
    subject: Subject,
    limits: Limits | None,
    judge: Judge | None = None,
    executions: int | None = None,
) -> Failure:
    """The failure made smaller; the same failure when shrinking loses the process."""
    try:
        return guarded(lambda: shrink(failure, subject, budget=executions, judge=judge), limits)
    except LostError:
        return failure
