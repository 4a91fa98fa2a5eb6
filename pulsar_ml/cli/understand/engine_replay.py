"""Replays of failures of the engine: the steps, the state at one of them, gdb, what to do next."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.campaign.local import failures
from pulsar_ml.campaign.local.inevitability import mark_of, short_line
from pulsar_ml.cli.output import print_json
from pulsar_ml.cli.understand.opened import Opened, open_failure
from pulsar_ml.exit_codes import CLEAN, ExitCode
from pulsar_ml.harness.replays import debugger
from pulsar_ml.harness.replays.ending import MARK
from pulsar_ml.harness.replays.view import View, guilty_event
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.harness.search.failure import Replayed
from pulsar_ml.terminal.printer import echo
from pulsar_ml.terminal.progress import ProgressDisplay


@dataclass(frozen=True, slots=True)
class Request:
    """The options of a replay; without ``limits`` it runs in this process."""

    path: Path
    suites: str
    module: str | None
    mutant: str | None
    trust: bool
    limits: Limits | None
    continuations: int = 0
    all_steps: bool = False
    to: int | None = None
    gdb: bool = False
    stop: int | None = None
    as_json: bool = False


def replay_failure_again(request: Request) -> ExitCode:
    """Makes a failure of the engine again, once, and shows it."""
    opened = open_failure(
        request.path, request.suites, request.module, request.mutant, trust=request.trust
    )
    if request.stop is not None:
        debugger.stop(opened.failure, opened.subject, request.stop)
        echo("the replay came to its end")
        return CLEAN
    marks: dict[int, str] = {}
    curve = ""
    if request.continuations:
        marks, curve = inevitable(opened, request)
    view = View(
        all_steps=request.all_steps,
        to=request.to,
        sources=(request.mutant or opened.failure.mutant) is None,
        sentence=opened.sentence,
        marks=marks,
    )
    again, text = failures.traced(
        opened.failure, opened.subject, opened.judge, request.limits, view
    )
    code = failures.exit_code_of(again)
    following = next_commands(opened, again, view)
    if request.as_json:
        print_json(
            {
                "exit_code": code,
                "exact": again.exact,
                "same_build": again.same_build,
                "verdict": again.verdict(),
                "recorded": json.loads(opened.failure.to_json()),
                "failure": None if again.failure is None else json.loads(again.failure.to_json()),
                "next": dict(following),
                **({"inevitable": curve} if curve else {}),
            }
        )
        return code
    print_text(text)
    if curve:
        echo(curve)
    if request.gdb:
        start_debugger(opened, again, request)
        return code
    if again.failure is not None:
        echo("next:")
        width = max(len(line) for _, line in following)
        for what, line in following:
            echo(f"  {line:{width}}  # {what}")
    if again.proves_nothing:
        echo(f"no verdict: {again.verdict()}", err=True)
    return code


def inevitable(opened: Opened, request: Request) -> tuple[dict[int, str], str]:
    """The mark of the step behind which the failure is inevitable, and the text about it."""
    with ProgressDisplay() as progress:
        found = failures.shown_inevitability(
            opened.failure,
            opened.subject,
            opened.judge,
            request.limits,
            request.continuations,
            progress,
        )
    if request.all_steps:
        return mark_of(found or ()), failures.curve_text(found)
    return {}, f"  {short_line(found) if found else failures.NOT_JUDGED}"


def print_text(text: str) -> None:
    """Print a replay; the row of the failing check is red where the terminal has colours."""
    for line in text.splitlines():
        if line.startswith(f"{MARK} "):
            echo(line, colour="red")
        else:
            echo(line)


def next_commands(opened: Opened, again: Replayed, view: View) -> list[tuple[str, str]]:
    """The commands to go on with about the failure, each behind its purpose."""
    found = [("changes that would end it", opened.command("explain"))]
    if again.failure is not None and not opened.failure.ended_process:
        if not view.all_steps:
            found.append(("all steps", opened.command("replay", "-v")))
        found.append(("the state at a step", opened.command("replay", "--to", "STEP")))
        if not opened.subject.needs_gil:
            found.append(("the guilty step in gdb", opened.command("replay", "--gdb")))
    if not {"--suites", "--mutant"} & set(opened.words):  # a page takes them from the record
        found.append(("a page to send", opened.command("report")))
    return found


def start_debugger(opened: Opened, again: Replayed, request: Request) -> None:
    """Starts gdb on the replay, stopped at the requested step or at the guilty one."""
    debugger.check_debuggable(opened.failure, opened.subject, again)
    at = guilty_event(opened.failure, again.trace)
    if request.to is not None:
        own = [n for n, event in enumerate(again.trace) if int(event["thread"]) >= 0]
        at = own[request.to - 1]
    event = None if at is None else again.trace[at]
    words = [sys.executable, "-m", "pulsar_ml", "replay", str(request.path), *opened.words]
    words += ["--stop", str(debugger.AT_FAILURE if at is None else at)]
    debugger.start(debugger.gdb_words(words, debugger.place_of(event, opened.failure)))
