"""What a mutant is: a bug, the text it replaces and what must catch it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_ml.campaign.trial.suite import ControlledSize


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong change of the native core.

    Attributes:
        id: short name, also on the command line.
        title: the mistake in a few words.
        origin: the issue or pull request of Apache Pulsar where it was seen, or "port" for a mistake that a
            port may make.
        file: path below ``pulsar_ml/``.
        old: lines that occur exactly once in the file; they may be indented further there.
        new: lines in their place.
        suite: the suite that must report it.
        breaks: invariants it breaks, for the reader.
        rare: real threads need some hundreds of trials or more; swept only when it is named.
        mode: "" for what real threads show. Otherwise only the controlled engine looks for it, in this
            mode: it takes weak memory, or a moment that real threads hardly meet.
        within: executions of mode c11 within which each seed of the engine must find it; 0: not hunted.
        executions: of a mutant that only the model of its suite sees, executions within which it does.
        programs: sizes and mix of the programs of that hunt.
        calls: one program instead, where random ones hardly ever are of the right shape: for each thread
            the names of operations with their arguments.
        settings: setting name -> inclusive range, in that hunt, where the usual small worlds are not enough.
        strategy: of that hunt; an exhaustive one searches two preemptions.
        helper: functions to put before the function that is changed.
        cimports: declarations that the new text needs.
        equivalent: why nothing can tell the mutant from the true core, in a sentence; "": something must.
        fenced: whether that is because of a fence. The thread sanitizer knows no fences, so what it reports
            of such a mutant says nothing.
    """

    id: str
    title: str
    origin: str
    file: str
    old: str
    new: str
    suite: str
    breaks: str
    rare: bool = False
    helper: str = ""
    cimports: str = ""
    mode: str = ""
    within: int = 0
    executions: int = 0
    programs: ControlledSize = ControlledSize()
    calls: tuple[tuple[tuple[str, *tuple[int, ...]], ...], ...] = ()
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    strategy: str = "portfolio"
    equivalent: str = ""
    fenced: bool = False
