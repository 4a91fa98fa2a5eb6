"""Opens a record of a failure of the engine: reads, trusts and builds what the commands need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pulsar_ml.campaign.local.failures import judge_for, read_failure, subject_of
from pulsar_ml.campaign.local.record_kind import is_failure
from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.local.suites import load_suites
from pulsar_ml.campaign.trial.suite import Suite
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.judges.oracle import Judge
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.terminal.command_line import DEFAULT_SUITES, command_line, short_path, suites_words
from pulsar_ml.terminal.hash_seed import restart_under
from pulsar_ml.terminal.trust import OPTION, check_built, check_trusted, trust_words


@dataclass(frozen=True, slots=True)
class Opened:
    """A failure of the engine with the code that failed.

    Attributes:
        path: the record.
        failure, subject, judge: the record's content, the code under test, the judge of answers.
        sentence: that of the broken invariant, or "".
        words: the options that another command needs for the same record.
    """

    path: Path
    failure: Failure
    subject: Subject
    judge: Judge | None
    sentence: str
    words: tuple[str, ...]

    def command(self, name: str, *more: str) -> str:
        """The command line of another command about the record, as the shell takes it."""
        return command_line(name, short_path(self.path), *more, *self.words)


def check_of_engine(path: Path, suites: str | None = None) -> None:
    """Raise UsageError for a record of real threads, which has no schedule."""
    if path.is_file() and not is_failure(path):
        content = read_record(path)  # damage is reported first
        hunt = command_line(
            "hunt", short_path(path), *suites_words(suites), *trust_words(content.module)
        )
        raise UsageError(
            f"{path} is of real threads, whose schedule is not known; find one first: {hunt}"
        )


def open_failure(
    path: Path,
    suites: str | None = None,
    module: str | None = None,
    mutant: str | None = None,
    *,
    trust: bool,
) -> Opened:
    """Open the record at ``path``; ``module`` and ``mutant`` replace the record's.

    Raises UsageError for a record of real threads, for code that is not trusted, and for a module
    or source file that is gone; BadRecordError for damage.
    """
    check_of_engine(path, suites)
    failure = read_failure(path)
    restart_under(failure.hash_seed)
    check_trusted(path, {"--module": failure.module}, trust=trust or bool(module))
    if module is None:
        check_built(path, failure.recipe, trust=trust)
    known = load_suites(suites or DEFAULT_SUITES)
    subject = subject_of(failure, module, mutant)
    chosen: tuple[str, ...] = (
        trust_words(failure.module) if module is None else ("--module", module)
    )
    if failure.recipe and module is None:
        chosen = (OPTION,)
    words = (*suites_words(suites), *chosen, *(("--mutant", mutant) if mutant else ()))
    return Opened(
        path, failure, subject, judge_for(known, failure), sentence_of(known, failure), words
    )


def sentence_of(suites: Mapping[str, Suite], failure: Failure) -> str:
    """The sentence of the broken invariant, first of suites about the failure's subject; or ""."""
    ordered = sorted(suites.values(), key=lambda suite: suite.subject != failure.subject)
    found = (
        suite.invariants[failure.rule] for suite in ordered if failure.rule in suite.invariants
    )
    return next(found, "").rstrip(".")
