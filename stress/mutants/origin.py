"""The origin of a result: digests of everything on which it depends, part by part."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import PurePath

from pulsar_ml.campaign.trial.trial import PRODUCT, load_native
from pulsar_ml.harness.subjects.program import Program, generate
from pulsar_ml.suites.registry import SUITES
from stress.mutants.catalogue import Mutant
from stress.mutants.declarations import cython_declarations
from stress.mutants.engine import PER_PROGRAM, program_of, program_of_calls
from stress.mutants.sources import code_digest, engine_digest, model_digest, short_digest
from stress.mutants.techniques import (
    ENGINE,
    THREAD_OPTIONS,
    Case,
    Technique,
    budget_of,
    own_programs,
)

SAMPLED = 4  # programs, of the seeds from 0 on


@dataclass(frozen=True, slots=True)
class Origin:
    """What a cell of the kill table was made from, as digests; "" for a part that plays no role.

    Attributes:
        code: the structure, its operations, and the mutant's text.
        programs: the first program of some seeds, and the budget that is spent on them.
        model: the suite's model, for the technique that judges by it.
        engine: the engine, for the techniques that run under it.
    """

    code: str
    programs: str
    model: str
    engine: str

    def differing(self, other: Origin) -> tuple[str, ...]:
        """Names of the parts in which two origins differ."""
        mine, others = asdict(self), asdict(other)
        return tuple(name for name in mine if mine[name] != others[name])


def origin_of(technique: Technique, case: Case) -> Origin:
    """The origin of a result that is made now."""
    suite = SUITES[case.mutant.suite]
    controlled = technique.built == ENGINE
    return Origin(
        code=short_digest([code_digest(suite.subject), case.selected or "", *written(case.mutant)]),
        programs=programs_digest(technique, case),
        model=model_digest(suite.model) if technique.name == "linear" else "",
        engine=engine_digest() if controlled else "",
    )


def written(mutant: Mutant) -> Iterator[str]:
    """The change that a mutant makes, without comments and layout."""
    yield PurePath(mutant.file).stem
    for text in (mutant.old, mutant.new, mutant.helper, mutant.cimports):
        yield "\n".join(cython_declarations(textwrap.dedent(text).strip("\n")))


# Programs ----------------------------------------------------------------------------------------------


def programs_digest(technique: Technique, case: Case) -> str:
    """Digits of a sample of the programs, and of the limits within which they run."""
    limits = (technique.name, budget_of(technique, case))
    if technique.built != ENGINE:
        return short_digest([*limits, *thread_programs(technique.name, case.mutant.suite)])
    mutant = own_programs(case.mutant)
    programs = (program.digest() for program in engine_programs(mutant))
    return short_digest([*limits, mutant.strategy, PER_PROGRAM, *programs])


@cache
def thread_programs(technique: str, name: str) -> tuple[str, ...]:
    """Digits of the first program of SAMPLED seeds of a suite on real threads."""
    suite, options = SUITES[name], THREAD_OPTIONS[technique]
    programs = (
        generate(
            load_native(PRODUCT).SUBJECTS[suite.subject],
            1000 * seed,
            threads=options.threads or suite.threads,
            operations=options.operations or suite.operations,
            mix=suite.mix,
            settings=suite.settings,
            noise=options.noise,
        )
        for seed in range(SAMPLED)
    )
    return tuple(program.digest() for program in programs)


def engine_programs(mutant: Mutant) -> Iterator[Program]:
    """The program of a mutant, or the first program of SAMPLED seeds, as the engine hunts in them."""
    suite = SUITES[mutant.suite]
    subject = load_native(PRODUCT).SUBJECTS[suite.subject]
    if mutant.calls:
        yield program_of_calls(suite, subject, mutant)
        return
    for seed in range(SAMPLED):
        yield program_of(suite, subject, 1000 * seed, mutant.programs, mutant.settings)
