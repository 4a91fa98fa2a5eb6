"""Executions of failures, reproduced from their records, each in a child process.

Only the project's own checked module, or a module that the user names, is loaded; never one that a
record names. Failures of another build are not reproduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType

from pulsar_ml.campaign.local.failures import curve_text, inevitability_of
from pulsar_ml.campaign.local.inevitability import FEW, mark_of, turning_point
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import CHECKED, load_native, select_mutant
from pulsar_ml.errors import BadRecordError, LimitsError, UsageError
from pulsar_ml.harness.search.child import Limits, LostError
from pulsar_ml.harness.search.failure import KIND, WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.sandbox import call
from pulsar_ml.harness.search.timeline import Timeline, timeline
from pulsar_ml.wording import counted

LIMITS = Limits(wall=20.0, cpu=10.0)  # seconds of one execution


@dataclass(frozen=True, slots=True)
class TraceView:
    """The view of a group's record in a report.

    ``lines`` describe the record. ``note`` is the outcome of the reproduction, or the reason for
    having none. ``failure`` is the record itself when it is one of the engine. ``curve`` is the
    share of continuations that fail, switch by switch, as text.
    """

    lines: tuple[str, ...]
    note: str
    failure: Failure | None = None
    timeline: Timeline | None = None
    lanes: str = ""
    curve: str = ""


def trace_views(
    groups: Sequence[Group],
    *,
    most: int,
    module: str | None = None,
    on_view: Callable[[], object] = lambda: None,
) -> Iterable[TraceView]:
    """The views of all groups in order, with interleavings for the first ``most`` that have one.

    ``module`` replaces the module that the records name; UsageError when it cannot be loaded.
    ``on_view`` is called after each view.
    """
    native: ModuleType | None = None
    if module is not None:
        native = load_module(module)
    drawn = 0
    for group in groups:
        record = read(group.replay)
        if isinstance(record, str):
            yield TraceView((), f"its record cannot be read: {record}")
        elif isinstance(record, ReplayRecord):
            yield TraceView(
                facts(record), "real threads: their schedule is not recorded, so it is not drawn"
            )
        elif (note := reason(record, module)) or drawn >= most:
            note = note or "not drawn: beyond the limit of --traces"
            yield TraceView(facts(record), note, record)
        else:
            native = native or load_module(CHECKED)
            yield reproduce(record, native)
            drawn += 1
        on_view()


def read(text: str) -> Failure | ReplayRecord | str:
    """Parses a violation's record; returns the error message for a damaged one."""
    try:
        return (
            Failure.from_text(text)
            if f'"{KIND}"' in text[:2_000] + text[-2_000:]
            else ReplayRecord.from_json(text)
        )
    except BadRecordError as error:
        return str(error)


def facts(record: Failure | ReplayRecord) -> tuple[str, ...]:
    if isinstance(record, Failure):
        return tuple(record.summary().splitlines()[1:])
    settings = ", ".join(f"{name}={value}" for name, value in sorted(record.settings.items()))
    lines = [
        f"{counted(record.threads, 'thread')} of {counted(record.operations, 'operation')}, "
        f"{'disturbed' if record.noise else 'undisturbed'}, build {record.build_id}",
        f"settings: {settings}" if settings else "",
        f"seen by thread {record.thread} in its call {record.call}" if record.thread >= 0 else "",
        f"module {record.module}" + (f", mutant {record.mutant}" if record.mutant else ""),
    ]
    return tuple(line for line in lines if line)


def reason(failure: Failure, module: str | None) -> str:
    """The reason for not reproducing a failure; "" when there is none."""
    if failure.ended_process:
        return f"{failure.kind}: no decisions are known, only its seed and number"
    if module is None and failure.module not in ("", CHECKED):
        return (
            f"of the module {failure.module}, which a report does not load by itself; "
            "reproduce it with --module PATH"
        )
    return ""


def load_module(module: str) -> ModuleType:
    try:
        return load_native(module)
    except ImportError as error:
        raise UsageError(f"the module {module} cannot be load_module: {error}") from None


def reproduce(failure: Failure, native: ModuleType) -> TraceView:
    subject = getattr(native, "SUBJECTS", {}).get(failure.subject)
    lines = facts(failure)
    if subject is None:
        return TraceView(lines, f"{native.__name__} has no subject {failure.subject!r}", failure)
    if str(subject.build_id) != failure.build_id:
        return TraceView(
            lines,
            f"build {failure.build_id} failed, and this is build {subject.build_id}: the execution "
            "is not reproduced; the stored record is shown",
            failure,
        )
    try:
        select_mutant(native, failure.mutant)
        again = call(lambda: failure.replay(subject), limits=LIMITS)
    except (LostError, BadRecordError, UsageError, LimitsError, ValueError, MemoryError) as error:
        return TraceView(lines, f"it could not be reproduced: {error}", failure)
    if not again.trace:
        return TraceView(lines, again.verdict(), failure)
    sources = failure.mutant is None
    note = again.verdict()
    if not sources:
        note += f"; line numbers refer to the sources with mutant {failure.mutant}"
    # Only a model, which a report does not load, can judge the answers of a continuation.
    judged = again.exact and failure.kind != WRONG_ANSWERS
    curve = inevitability_of(failure, subject, None, LIMITS, FEW) if judged else ()
    turn = turning_point(curve or ())
    return TraceView(
        lines,
        note,
        failure,
        timeline(
            failure,
            again.trace,
            subject=subject,
            sources=sources,
            turn=turn.event if turn else None,
        ),
        failure.lane_table(
            again.trace, subject=subject, sources=sources, marks=mark_of(curve or ())
        ),
        curve_text(curve) if judged else "",
    )
