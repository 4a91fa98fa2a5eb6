"""The executions of failures, made again from their records, each in a child process.

Only on the project's own checked module or on one that the user names: what a record names is not loaded. On
another build than the one that failed nothing is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import ModuleType

from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import CHECKED, load_native, select_mutant
from pulsar_ml.errors import BadRecordError, LimitsError, UsageError
from pulsar_ml.harness.search.failure import KIND, Failure, replay
from pulsar_ml.harness.search.lanes import counted, lane_table, summary
from pulsar_ml.harness.search.sandbox import Limits, LostError, call
from pulsar_ml.harness.search.timeline import Timeline, timeline

LIMITS = Limits(wall=20.0, cpu=10.0)  # of one execution


@dataclass(frozen=True, slots=True)
class Shown:
    """What a report shows of a group's record.

    ``lines`` say what it is; ``note`` why there is no interleaving, or what is to be known of it; ``failure``
    is the record itself where it is one of the engine.
    """

    lines: tuple[str, ...]
    note: str
    failure: Failure | None = None
    timeline: Timeline | None = None
    lanes: str = ""


def shown(
    groups: Sequence[Group],
    *,
    most: int,
    module: str | None = None,
    told: Callable[[], object] = lambda: None,
) -> Iterable[Shown]:
    """What there is of each group, in order; the interleavings of the first ``most`` that have one.

    ``module`` takes the place of the module that the records name. UsageError when it cannot be loaded.
    """
    native: ModuleType | None = None
    if module is not None:
        native = loaded(module)
    drawn = 0
    for group in groups:
        record = read(group.replay)
        if isinstance(record, str):
            yield Shown((), f"its record cannot be read: {record}")
        elif isinstance(record, ReplayRecord):
            yield Shown(
                facts(record), "real threads: their schedule was not recorded, so it is not drawn"
            )
        elif (note := reason(record, module)) or drawn >= most:
            yield Shown(facts(record), note or "not drawn: --traces says how many are", record)
        else:
            native = native or loaded(CHECKED)
            yield made_again(record, native)
            drawn += 1
        told()


def read(text: str) -> Failure | ReplayRecord | str:
    """A violation's record, or why it is none."""
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
        return tuple(summary(record).splitlines()[1:])
    told = ", ".join(f"{name}={value}" for name, value in sorted(record.settings.items()))
    lines = [
        f"{counted(record.threads, 'thread')} of {counted(record.operations, 'operation')}, "
        f"{'disturbed' if record.noise else 'undisturbed'}, build {record.build_id}",
        f"settings: {told}" if told else "",
        f"seen by thread {record.thread} in its call {record.call}" if record.thread >= 0 else "",
        f"module {record.module}" + (f", mutant {record.mutant}" if record.mutant else ""),
    ]
    return tuple(line for line in lines if line)


def reason(failure: Failure, module: str | None) -> str:
    """Why a failure is not made again at all; "" when nothing speaks against it."""
    if failure.lost:
        return f"{failure.kind}: no decisions are known, only its seed and number"
    if module is None and failure.module not in ("", CHECKED):
        return (
            f"of the module {failure.module}, which a report does not load unasked; "
            "--module PATH makes it again"
        )
    return ""


def loaded(module: str) -> ModuleType:
    try:
        return load_native(module)
    except ImportError as error:
        raise UsageError(f"the module {module} cannot be loaded: {error}") from None


def made_again(failure: Failure, native: ModuleType) -> Shown:
    subject = getattr(native, "SUBJECTS", {}).get(failure.subject)
    lines = facts(failure)
    if subject is None:
        return Shown(lines, f"{native.__name__} has no subject {failure.subject!r}", failure)
    if str(subject.build_id) != failure.build_id:
        return Shown(
            lines,
            f"build {failure.build_id} failed, and this is build {subject.build_id}: the execution is not "
            "made again here; what was stored is shown",
            failure,
        )
    try:
        select_mutant(native, failure.mutant)
        again = call(lambda: replay(failure, subject), limits=LIMITS)
    except (LostError, BadRecordError, UsageError, LimitsError, ValueError, MemoryError) as error:
        return Shown(lines, f"it could not be made again: {error}", failure)
    if not again.trace:
        return Shown(lines, again.verdict(), failure)
    sources = failure.mutant is None
    note = again.verdict()
    if not sources:
        note += f"; line numbers are those of the sources with mutant {failure.mutant}, whose text is not here"
    return Shown(
        lines,
        note,
        failure,
        timeline(failure, again.trace, subject=subject, sources=sources),
        lane_table(failure, again.trace, subject=subject, sources=sources),
    )
