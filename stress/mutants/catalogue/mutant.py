"""Mutants: a known bug, the text that it replaces, and the suite that must report it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pulsar_ml.campaign.trial.suite import ControlledSize

USUAL = ControlledSize()  # of programs in the engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One wrong change of the native core.

    Attributes:
        id: short name, also on the command line.
        title: the mistake in a few words.
        origin: the issue or pull request of Apache Pulsar with the bug, or "port" for a mistake
            that a port may make.
        file: path below ``pulsar_ml/``.
        old: lines that occur exactly once in the file, where they may be indented further.
            Comments do not matter.
        function: the function with the old text; "" if the text occurs once in the whole file.
        new: lines in their place.
        suite: the suite that must report it.
        breaks: invariants it breaks, for the reader.
        rare: real threads need some hundreds of trials or more; swept only if it is named.
        mode: "" if real threads show it. Otherwise only the engine looks for it, in this mode: it
            needs weak memory, or a schedule that is rare on real threads.
        within: executions of mode c11 in which each seed of the engine must find it; 0: not hunted.
        executions: executions in which the model of its suite sees it, if only the model does.
        programs: sizes and mix of the programs of that hunt.
        calls: one program instead, if random programs rarely have the right shape: for each
            thread the names of operations with their arguments.
        settings: setting name -> inclusive range in that hunt, if the usual small ones do not do.
        strategy: of that hunt; an exhaustive one searches two preemptions.
        helper: functions to put before the changed function.
        cimports: declarations that the new text needs.
        equivalent: the reason why the mutant behaves like the true core; "": it does not.
    """

    id: str
    title: str
    origin: str
    file: str
    old: str
    new: str
    suite: str
    breaks: str
    function: str = ""
    rare: bool = False
    helper: str = ""
    cimports: str = ""
    mode: str = ""
    within: int = 0
    executions: int = 0
    programs: ControlledSize = USUAL
    calls: tuple[tuple[tuple[str, *tuple[int, ...]], ...], ...] = ()
    settings: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    strategy: str = "portfolio"
    equivalent: str = ""
