"""One check of a file by ``pulsar-ml linearize``: within its limits, with progress.

Whatever ends it early, an answer that was found is printed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pulsar_ml.cli.find.patience import Patience
from pulsar_ml.exit_codes import CLEAN, UNKNOWN, VIOLATION, ExitCode
from pulsar_ml.harness.histories.files import load_history
from pulsar_ml.harness.histories.history import History
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, Options, Verdict, check
from pulsar_ml.harness.linearize.effort import Effort
from pulsar_ml.harness.linearize.limits import _memory
from pulsar_ml.harness.linearize.limits._alarm import OutOfTime, alarm
from pulsar_ml.harness.linearize.picture import describe_verdict
from pulsar_ml.harness.models.conformance import check_model
from pulsar_ml.terminal.printer import echo

# Checks that a model keeps its contract may take a tenth of the time limit, and so many seconds.
SHARE_OF_CONTRACT = 10
SECONDS_OF_CONTRACT = 5.0
LATE = "a larger --timeout may help"

Found = TypeVar("Found")

ANSWERS = {LEGAL: CLEAN, ILLEGAL: VIOLATION}


class Checking:
    """The state of one check; ``doing`` says what it does at present."""

    def __init__(self, file: Path, model: Any, options: Options, *, as_json: bool) -> None:
        self.file = file
        self.model = model
        self.options = options
        self.as_json = as_json
        self.effort = Effort.of(options.most_steps, options.timeout)
        self.doing = f"reading {file.name}"
        self.verdict: Verdict | None = None

    def progress(self) -> str:
        if self.effort.parts:
            return f"{self.doing}; legal keys: {self.effort.legal_parts} of {self.effort.parts}"
        return self.doing

    def read(self, *, keyed: bool, form: str, failed_cas: bool) -> History | None:
        """Return the history in the file; None: the time is over."""
        history: History | None = None
        try:
            with alarm(self.effort.deadline_ns):
                history = load_history(self.file, keyed=keyed, form=form, failed_cas=failed_cas)
        except OutOfTime:
            pass
        return history

    def check_contract(self, history: History) -> None:
        """Raise ModelError when the model breaks its contract on calls of the history."""
        self.doing = "checking the model's contract"
        rest = self.effort.seconds_left()
        share = SECONDS_OF_CONTRACT
        if rest is not None:
            share = min(share, rest / SHARE_OF_CONTRACT)
        try:
            with alarm(self.effort.soon(share)):
                check_model(self.model, history, seconds=share)
        except OutOfTime:
            pass  # a share of the contract was checked
        self.doing = f"checking {len(history)} operations"

    def linearizable(self, history: History, page: Path | None) -> ExitCode:
        """Check the history, and print the answer."""
        self.verdict = check(history, self.model, options=self.options, effort=self.effort)
        if self.verdict.answer == ILLEGAL:
            self.doing = "illegal; explaining"
        shown = self.in_time(lambda: self.describe(history, self.model), "")
        if not shown:
            self.verdict = self.verdict.without_explanation("everything else: the time was over")
            shown = self.describe(history, None)  # without the states and texts of the model
        if page is not None and not self.in_time(lambda: self.write(history, page), False):
            shown += f"\n{page} was not written: the time was over; {LATE}"
        echo(shown)
        return ANSWERS.get(self.verdict.answer, UNKNOWN)

    def in_time(self, work: Callable[[], Found], otherwise: Found) -> Found:
        """Return what ``work`` returns, or something else when the time is over."""
        found = otherwise
        try:
            with alarm(self.effort.deadline_ns):
                found = work()
        except OutOfTime:
            pass
        return found

    def describe(self, history: History, model: Any) -> str:
        assert self.verdict is not None
        if self.as_json:
            return as_text(history, self.verdict)
        return describe_verdict(history, self.verdict, model)

    def write(self, history: History, page: Path) -> bool:
        from pulsar_ml.report.files import write
        from pulsar_ml.report.history_page import history_page

        assert self.verdict is not None
        text = history_page(history, self.verdict, self.model, name=self.file.name)
        write(page, text.encode(errors="replace").decode())
        return True

    def criterion(self, history: History, name: str) -> ExitCode:
        """Check the history for a criterion beside linearizability, and print the answer."""
        from pulsar_ml.harness.linearize.consistency.criteria import check_criterion
        from pulsar_ml.harness.linearize.consistency.text import describe_consistency

        rest = dataclasses.replace(self.options, timeout=self.effort.seconds_left())
        found = check_criterion(history, self.model, name, options=rest)
        if self.as_json:
            content = {"operations": len(history), **dataclasses.asdict(found)}
            echo(json.dumps(content, indent=2, default=str))
        else:
            echo(describe_consistency(history, found, self.model))
        return ANSWERS.get(found.answer, UNKNOWN)

    def unread(self) -> ExitCode:
        """Print that the time was over before the history was there."""
        reason = f"out of time while {self.file.name} was read"
        if self.as_json:
            echo(json.dumps({"answer": "unknown", "reason": reason}, indent=2))
        else:
            echo(f"unknown: {reason}\n  {LATE}")
        return UNKNOWN

    def interrupted(self, history: History | None) -> ExitCode | None:
        """Print what was found before an interruption; return the exit code of an answer."""
        if self.verdict is not None and history is not None:
            self.verdict = self.verdict.without_explanation("everything else: it was interrupted")
            echo(self.describe(history, None))
            return ANSWERS.get(self.verdict.answer, UNKNOWN)
        if self.effort.parts:
            echo(
                f"legal keys: {self.effort.legal_parts} of {self.effort.parts}; no key was "
                "found illegal so far",
                err=True,
            )
        return None


def checked(checking: Checking, criterion: str, page: Path | None, **reading: Any) -> ExitCode:
    """Run a check of a criterion; "": linearizability."""
    history: History | None = None
    try:
        with Patience(checking.progress, _memory.stop):
            history = checking.read(**reading)
            if history is None:
                return checking.unread()
            checking.check_contract(history)
            if criterion:
                return checking.criterion(history, criterion)
            return checking.linearizable(history, page)
    except KeyboardInterrupt:
        code = checking.interrupted(history)
        if code is None:
            raise
        return code


def as_text(history: History, verdict: Verdict) -> str:
    content: dict[str, Any] = {"operations": len(history), "criterion": verdict.criterion}
    content |= dataclasses.asdict(verdict)
    return json.dumps(content, indent=2, default=str)
