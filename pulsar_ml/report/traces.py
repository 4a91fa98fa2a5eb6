"""Executions of failures, reproduced from their records, each in a child process.

Only the project's own checked module, or a module that the user names, is loaded; never one that a
record names. Failures of another build are not reproduced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from pulsar_ml.campaign.local.failures import judge_for, subject_of
from pulsar_ml.campaign.local.hints import one_session
from pulsar_ml.campaign.local.inevitability import FEW, Share, mark_of, shares, turning_point
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.campaign.trial.trial import CHECKED, load_native, select_mutant
from pulsar_ml.errors import BadRecordError, LimitsError, PulsarMlError, UsageError
from pulsar_ml.harness.causes.missing import missing_order, race_steps, short_place
from pulsar_ml.harness.causes.trace import place_of
from pulsar_ml.harness.causes.why import why
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.child import Limits, LostError, Send
from pulsar_ml.harness.search.failure import AT_LOCATIONS, KIND, WRONG_ANSWERS, Failure
from pulsar_ml.harness.search.sandbox import watch
from pulsar_ml.harness.search.timeline import Timeline, timeline
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.report.execution.answers import history_data
from pulsar_ml.report.execution.drawing import Excerpts, excerpts_of
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from pulsar_ml.terminal.trust import OPTION as TRUST
from pulsar_ml.wording import counted

LIMITS = Limits(wall=20.0, cpu=10.0)  # seconds of one execution


@dataclass(frozen=True, slots=True)
class Drawn:
    """The execution of a failure that was made again.

    Attributes:
        note: the outcome of the replay.
        timeline, lanes: its steps as a drawing and as a table in columns.
        excerpts: the lines of source beside the drawing.
        curve: the share of continuations that fail, switch by switch; None: not judged.
        location, weak, stale: the facts for ``sentence_of`` of ``execution/sentence.py``.
        history: the operations of wrong answers, see :mod:`pulsar_ml.report.execution.answers`.
        why: sentences on the cause, see :mod:`pulsar_ml.harness.causes.why`.
    """

    note: str
    timeline: Timeline | None = None
    lanes: str = ""
    excerpts: Excerpts = field(default_factory=dict)
    curve: tuple[Share, ...] | None = ()
    location: str = ""
    weak: str = ""
    stale: str = ""
    history: Mapping[str, Any] = field(default_factory=dict)
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TraceView:
    """The view of a group's record in a report.

    ``lines`` describe the record. ``note`` is the outcome of the reproduction, or the reason for
    having none. ``record`` is None when it cannot be read.
    """

    lines: tuple[str, ...]
    note: str
    record: Failure | ReplayRecord | None = None
    drawn: Drawn | None = None
    subject: Subject | None = None

    @property
    def failure(self) -> Failure | None:
        return self.record if isinstance(self.record, Failure) else None

    @property
    def lanes(self) -> str:
        return self.drawn.lanes if self.drawn else ""


def trace_views(
    groups: Sequence[Group],
    *,
    most: int,
    module: str | None = None,
    build: bool = False,
    on_view: Callable[[], object] = lambda: None,
) -> Iterable[TraceView]:
    """The views of all groups in order, with interleavings for the first ``most`` that have one.

    ``module`` replaces the module that the records name; UsageError when it cannot be loaded.
    ``build`` allows a record to name a source file, which is built, and a module, which is loaded.
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
            note = "real threads: their schedule is not recorded, so it is not drawn"
            yield TraceView(facts(record), note, record)
        elif (note := reason(record, module, build)) or drawn >= most:
            note = note or "not drawn: beyond the limit of --traces"
            yield TraceView(facts(record), note, record)
        elif build and module is None:
            yield built(record)
            drawn += 1
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


def reason(failure: Failure, module: str | None, build: bool) -> str:
    """The reason for not reproducing a failure; "" when there is none."""
    if failure.ended_process:
        return f"{failure.kind}: no decisions are known, only its seed and number"
    if module is not None or build:
        return ""
    if failure.recipe:
        return (
            "of code that is built from a source file, which a report does not build by itself; "
            f"if the record is yours, add {TRUST}"
        )
    if failure.module not in ("", CHECKED):
        return (
            f"of the module {failure.module}, which a report does not load by itself; "
            "reproduce it with --module PATH"
        )
    return ""


def load_module(module: str) -> ModuleType:
    try:
        return load_native(module)
    except ImportError as error:
        raise UsageError(f"the module {module} cannot be loaded: {error}") from None


def built(failure: Failure) -> TraceView:
    """The view of a failure whose subject is built, or loaded, as its record says."""
    try:
        subject = subject_of(failure, None, None)
    except (PulsarMlError, ImportError) as error:
        return TraceView(facts(failure), f"it could not be reproduced: {error}", failure)
    return view_of(failure, subject)


def reproduce(failure: Failure, native: ModuleType) -> TraceView:
    subject = getattr(native, "SUBJECTS", {}).get(failure.subject)
    if subject is None:
        note = f"{native.__name__} has no subject {failure.subject!r}"
        return TraceView(facts(failure), note, failure)
    try:
        select_mutant(native, failure.mutant)
    except (UsageError, ValueError) as error:
        return TraceView(facts(failure), f"it could not be reproduced: {error}", failure)
    return view_of(failure, subject)


def view_of(failure: Failure, subject: Subject) -> TraceView:
    lines = facts(failure)
    if str(subject.build_id) != failure.build_id:
        return TraceView(
            lines,
            f"build {failure.build_id} failed, and this is build {subject.build_id}: the execution "
            "is not reproduced; the stored record is shown",
            failure,
        )
    try:
        drawn = drawn_again(failure, subject)
    except (LostError, BadRecordError, UsageError, LimitsError, ValueError, MemoryError) as error:
        return TraceView(lines, f"it could not be reproduced: {error}", failure)
    return TraceView(lines, drawn.note, failure, drawn if drawn.timeline else None, subject)


def drawn_again(failure: Failure, subject: Subject) -> Drawn:
    """Make a failure again and judge its continuations, all in one child process.

    A continuation may end the process: then the execution has no curve.
    """
    suites = load_suites(DEFAULT_SUITES) if failure.module == CHECKED or not failure.recipe else {}
    judge = subject.judge or judge_for(suites, failure)
    rule = sentence_of_rule(suites, failure)
    found: list[Drawn] = []

    def work(send: Send) -> None:
        with one_session(subject):
            plain = draw(failure, subject, judge, rule=rule)
            send(plain)
            if plain.timeline is not None and (failure.kind != WRONG_ANSWERS or judge is not None):
                curve = shares(failure, subject, judge, samples=FEW)
                if curve:
                    send(draw(failure, subject, judge, curve, rule=rule))

    try:
        watch(work, found.append, limits=LIMITS)
    except LostError:
        if not found:
            raise
        return replace(found[0], curve=None)
    return found[-1]


def sentence_of_rule(suites: Mapping[str, Suite], failure: Failure) -> str:
    """The sentence of the broken invariant, by a suite about the failure's subject; or ""."""
    about = (suite for suite in suites.values() if suite.subject == failure.subject)
    return next(filter(None, (suite.invariants.get(failure.rule) for suite in about)), "")


def draw(
    failure: Failure,
    subject: Subject,
    judge: Judge | None,
    curve: tuple[Share, ...] = (),
    *,
    rule: str = "",
) -> Drawn:
    """Replay a failure and draw it; ``rule`` is the sentence of the broken invariant."""
    again = failure.replay(subject, judge)
    trace = again.trace
    if not trace:
        return Drawn(again.verdict())
    sources = failure.mutant is None
    note = again.verdict()
    if not sources:
        note += f"; line numbers refer to the sources with mutant {failure.mutant}"
    turn = turning_point(curve)
    names = Names(trace)
    missing = missing_order(trace, race_steps(failure, subject)) if again.exact else None
    drawn = timeline(
        failure,
        trace,
        subject=subject,
        sources=sources,
        turn=turn.event if turn else None,
        missing=missing[0] if missing else None,
    )
    table = failure.lane_table(trace, subject=subject, sources=sources, marks=mark_of(curve))
    return Drawn(
        note,
        drawn,
        table,
        excerpts_of(drawn),
        curve,
        memory_of(trace[-1], names) if failure.kind in AT_LOCATIONS and again.exact else "",
        missing[1] if missing else "",
        stale_text(trace, names) if failure.race is None else "",
        history_data(failure, subject, judge) if again.exact else {},
        why(failure, subject, trace, judge=judge, rule=rule) if again.exact else (),
    )


def memory_of(event: Mapping[str, Any], names: Names) -> str:
    """The name of the memory of a failing access, "" if it has none; a whole block is freed."""
    return names.of(event) if event["op"] == "free" else names.known(event)


def stale_text(trace: Sequence[Mapping[str, Any]], names: Names) -> str:
    """The last read of an old value, in words; "" for none."""
    found = [event for event in trace if event["op"] == "load" and event["stale"]]
    if not found:
        return ""
    last = found[-1]
    name = names.known(last)
    of = f" of {name}" if name else ""
    return f"thread {last['thread']} read an old value{of} at {short_place(place_of(last))}"
