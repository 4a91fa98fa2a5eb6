"""The origins of cells: what each technique would use today for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from pulsar_ml.campaign.trial.guidance import EXECUTIONS, SCOUTED, SEARCHED
from pulsar_ml.campaign.trial.trial import PRODUCT, load_native
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.suites.registry import SUITES
from stress.mutants.build import ROOT, replaced
from stress.mutants.catalogue import Mutant
from stress.mutants.hunting import PER_PROGRAM, program_of, program_of_calls
from stress.mutants.sources.declarations import cython_declarations
from stress.mutants.sources.digests import code_digest, engine_digest, model_digest, short_digest
from stress.mutants.sources.origin import Origin
from stress.mutants.table.blind import blind_programs
from stress.mutants.table.techniques import (
    DIRECTED,
    ENGINE,
    GUIDED,
    THREAD_OPTIONS,
    Case,
    Technique,
    budget_of,
)

JUDGED = {"linear", "model", "fault", GUIDED, DIRECTED}  # techniques that ask a suite's model
SAMPLED = 4  # programs, of the seeds from 0 on


def origin_of(technique: Technique, case: Case) -> Origin:
    """The origin of a cell that is made now."""
    suite = SUITES[case.mutant.suite]
    return Origin(
        code=short_digest([code_digest(suite.subject), case.selected or "", *changes(case.mutant)]),
        programs=programs_digest(technique, case),
        model=model_digest(suite.model) if technique.name in JUDGED else "",
        engine=engine_digest() if technique.build == ENGINE else "",
    )


def changes(mutant: Mutant) -> tuple[str, ...]:
    """The declarations that a mutant adds to its file, and those that it removes."""
    if not mutant.file:
        return ()
    path = ROOT / "pulsar_ml" / mutant.file
    source = path.read_text()
    return differences(source, mutant.cimports + "\n" + replaced(source, mutant))


@cache
def differences(source: str, changed: str) -> tuple[str, ...]:
    """The declarations that a changed source has more, and those that it has less."""
    before, after = counted(source), Counter(cython_declarations(changed))
    return (*sorted((after - before).elements()), "", *sorted((before - after).elements()))


@cache
def counted(source: str) -> Counter[str]:
    """The declarations of a source without a mutant, which many mutants change."""
    return Counter(cython_declarations(source))


# Programs -----------------------------------------------------------------------------


def programs_digest(technique: Technique, case: Case) -> str:
    """Digits of a sample of the programs, and of the limits within which they run.

    The programs themselves are compared, so a generator that is rewritten and still draws the same
    programs voids nothing.
    """
    limits = (technique.name, budget_of(technique, case))
    if technique.build != ENGINE:
        return short_digest([*limits, *thread_programs(technique.name, case.mutant.suite)])
    if technique.name != DIRECTED:
        programs = generated_programs(case.mutant.suite, technique.name == "model")
        guided = technique.name == GUIDED
        each = (EXECUTIONS, SCOUTED, SEARCHED) if guided else (PER_PROGRAM,)
        return short_digest([*limits, *each, *programs])
    own = (program.digest() for program in engine_programs(case.mutant))
    return short_digest([*limits, case.mutant.strategy, PER_PROGRAM, *own])


@cache
def generated_programs(name: str, single: bool) -> tuple[str, ...]:
    """Digests of the first program of SAMPLED seeds that a suite generates for the engine."""
    suite = SUITES[name]
    subject = load_native(PRODUCT).SUBJECTS[suite.subject]
    programs = (
        next(blind_programs(subject, suite, seed, single=single)) for seed in range(SAMPLED)
    )
    return tuple(program.digest() for program in programs)


@cache
def thread_programs(technique: str, name: str) -> tuple[str, ...]:
    """Digests of the first program of SAMPLED seeds of a suite on real threads."""
    suite, options = SUITES[name], THREAD_OPTIONS[technique]
    programs = (
        Program.generate(
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
    """Yields the program of a mutant, or the first program of SAMPLED seeds in the engine."""
    suite = SUITES[mutant.suite]
    subject = load_native(PRODUCT).SUBJECTS[suite.subject]
    if mutant.calls:
        yield program_of_calls(suite, subject, mutant)
        return
    for seed in range(SAMPLED):
        yield program_of(suite, subject, 1000 * seed, mutant.programs, mutant.settings)
