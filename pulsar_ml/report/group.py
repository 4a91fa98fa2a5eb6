"""The data of one signature for the page's script: sentence, commands, program, drawing, seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.local.failures import curve_text
from pulsar_ml.campaign.store.merge import Group
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.errors import BadRecordError
from pulsar_ml.harness.causes.hints import MOST_HINTS
from pulsar_ml.harness.causes.hints_file import read_hints
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.hash_seed import seed_text
from pulsar_ml.harness.subjects.program import Program, call_text
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.report.execution.drawing import drawing_data
from pulsar_ml.report.execution.sentence import sentence_of
from pulsar_ml.report.findings import MOST_TEXT, Findings
from pulsar_ml.report.traces import TraceView
from pulsar_ml.terminal.command_line import command_line, short_path, suites_words
from pulsar_ml.terminal.trust import OPTION as TRUST
from pulsar_ml.terminal.trust import trust_words
from pulsar_ml.wording import counted

MOST_CALLS = 200  # of a thread
LEADING_FOLDERS = re.compile(r"^/\S*/(?=[^/\s]+:\d+: )")  # of an assertion's file


def sentence(group: Group, view: TraceView) -> str:
    drawn = view.drawn
    facts: Mapping[str, str] = (
        {"location": drawn.location, "weak": drawn.weak, "stale": drawn.stale} if drawn else {}
    )
    return sentence_of(view.record, group.invariant, group.message, **facts)


def group_data(
    findings: Findings, group: Group, view: TraceView, about: str, *, detailed: bool
) -> dict[str, Any]:
    """The data of a group; without ``detailed`` its program and environment are left out."""
    members = findings.members.get(group.signature, [])
    shared = group.message[:MOST_TEXT]
    record, drawn = view.record if detailed else None, view.drawn
    path = findings.record(group)
    return {
        "signature": group.signature,
        "suite": group.suite,
        "invariant": group.invariant,
        "sentence": about,
        "count": group.count,
        "seed": str(group.seed),  # JavaScript cannot represent 64-bit integers
        "phase": group.phase,
        "mark": findings.baseline.status(group.signature) if findings.baseline else "",
        "message": LEADING_FOLDERS.sub("", shared),
        "why": drawn.why if drawn else (),
        "hints": hint_lines(path, record),
        "commands": commands(findings, group, view, path) if path else [],
        "lines": [
            line.removeprefix("  ")[:MOST_TEXT]
            for line in (
                *sizes_before_and_after(findings, group),
                *view.lines,
                *signature_line(findings, group),
            )
        ],
        "note": view.note[:MOST_TEXT],
        "drawing": drawing_data(drawn.timeline, drawn.excerpts, drawn.curve)
        if drawn and drawn.timeline
        else None,
        "history": (drawn.history if drawn else None) or None,
        "lanes": view.lanes,
        "curve": curve_text(drawn.curve) if drawn and drawn.curve != () else "",
        "program": program_lines(record, view.subject),
        "environment": environment_of(record),
        "members": [
            [
                str(member.seed),
                "" if member.message == shared else member.message,
                member.host,
                member.log,
                member.at,
            ]
            for member in members
        ],
    }


def commands(
    findings: Findings, group: Group, view: TraceView, path: Path
) -> list[tuple[str, str]]:
    """The next commands of a reader: the purpose of each, and the command."""
    record = view.record
    words = (short_path(path), *suites_words(findings.suites))
    trust: tuple[str, ...] = ()
    if record is not None:
        trust = trust_words(record.module)
    if isinstance(record, Failure) and record.recipe:
        trust = (TRUST,)
    found = [("Make the failure again", command_line("replay", *words, *trust))]
    if isinstance(record, Failure):
        found.append(("Look for changes that end it", command_line("explain", *words, *trust)))
    if isinstance(record, Failure) and not record.ended_process:
        found.append(("Show its steps", command_line("replay", words[0], "-v", *words[1:], *trust)))
        if view.subject is not None and not view.subject.needs_gil:
            gdb = command_line("replay", words[0], "--gdb", *words[1:], *trust)
            found.append(("Stop at the guilty step in gdb", gdb))
    elif isinstance(record, ReplayRecord):
        found.append(("Find a schedule that repeats it", command_line("hunt", *words, *trust)))
    if record is not None:
        found.append(("Make this page of it alone", command_line("report", words[0], *trust)))
    return found


def hint_lines(path: Path | None, record: Failure | ReplayRecord | None) -> list[str]:
    """The first changes that end a failure, if ``pulsar-ml explain`` has left them beside it."""
    if path is None or not isinstance(record, Failure):
        return []
    try:
        kept = read_hints(path, record)
    except BadRecordError:
        return []  # explain writes the file again
    if kept is None:
        return []
    return [
        f"{'; and '.join(hint.changes)}: none of {'all ' if hint.complete else ''}"
        f"{counted(hint.executions, 'execution')} fails"[:MOST_TEXT]
        for hint in kept.hints[:MOST_HINTS]
    ]


def program_lines(
    record: Failure | ReplayRecord | None, subject: Subject | None
) -> list[tuple[str, list[str]]]:
    """The calls of each thread of a failure of the engine, behind the settings of the instance."""
    if not isinstance(record, Failure):
        return []
    try:
        program = Program.from_json(record.program)
    except BadRecordError:
        return []
    settings = [f"{name} = {value}" for name, value in sorted(program.settings.items())]
    found = [("settings", settings)] if settings else []
    for thread, calls in enumerate(program.threads):
        texts = [
            call_text(program, thread, number, subject)
            for number in range(min(len(calls), MOST_CALLS))
        ]
        more = len(calls) - len(texts)
        texts += [f"and {more:,} more"] if more else []
        found.append((f"thread {thread}", texts))
    return found


def environment_of(record: Failure | ReplayRecord | None) -> list[tuple[str, str]]:
    """The options and the build of a failure, as names and values."""
    if record is None:
        return []
    common = {"build": record.build_id, "module": record.module, "mutant": record.mutant or ""}
    if isinstance(record, ReplayRecord):
        pairs = {**common, "threads": f"{record.threads}, real", "seed": str(record.seed)}
        return [(name, value) for name, value in pairs.items() if value]
    pairs = {
        "memory model": record.mode,
        "strategy": record.strategy,
        "seed": f"{record.seed}, execution {record.execution:,}",
        "decisions": f"{len(record.decisions):,}",
        "faults": ", ".join(record.faults),
        "memory": record.reuse,
        "step limit": f"{record.step_limit:,}",
        "hashes": seed_text(record.hash_seed) if record.hash_seed else "",
        **common,
    }
    return [(name, str(value)[:MOST_TEXT]) for name, value in pairs.items() if value]


def signature_line(findings: Findings, group: Group) -> list[str]:
    """The signature of a group, and the baseline's entry about it."""
    note = findings.baseline.note(group.signature) if findings.baseline else ""
    return [f"signature {group.signature}" + (f", {note}" if note else "")]


def sizes_before_and_after(findings: Findings, group: Group) -> list[str]:
    """A line about the sizes before and after shrinking; none for an unchanged failure."""
    shrunk = findings.shrunk.get(group.signature)
    if shrunk is None or shrunk.before is None or shrunk.after is None:
        return []
    pairs = [
        (noun, getattr(shrunk.before, f"{noun}s"), getattr(shrunk.after, f"{noun}s"))
        for noun in ("thread", "operation", "decision", "step")
    ]
    # For real threads, the numbers of decisions and steps before shrinking are unknown, hence 0.
    sizes = [f"{counted(was, noun)} to {now:,}" for noun, was, now in pairs if was and was != now]
    return [f"shrunk after the run: {', '.join(sizes)}"]
