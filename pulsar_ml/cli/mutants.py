"""``pulsar-ml mutants``: automatic mutants of suites, made by the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from pulsar_ml.campaign.local.suites import choose_suites, load_suites
from pulsar_ml.campaign.local.weakening import EXECUTIONS, PROGRAMS, Weakening, WeakResult
from pulsar_ml.campaign.trial.trial import CHECKED, load_native
from pulsar_ml.cli import options as shared
from pulsar_ml.cli.command import command as new_command
from pulsar_ml.cli.command import option
from pulsar_ml.cli.output import print_json
from pulsar_ml.exit_codes import CLEAN, NOTHING_EXERCISED, SEARCH, VIOLATION, ExitCode
from pulsar_ml.terminal.progress import ProgressDisplay


@new_command(
    "mutants",
    examples=(
        "mutants refcount",
        "mutants mine --suites my_suites --module ./mine.so --place queue.h",
    ),
    exit_codes=SEARCH,
)
@click.argument("suite")
@shared.suites()
@shared.module(CHECKED)
@option(
    "--place", metavar="TEXT", default="", group=shared.CODE, help="Only places with this text."
)
@shared.seed()
@shared.seeds(PROGRAMS)
@shared.executions(EXECUTIONS)
@shared.mode
@shared.as_json
def command(
    suite: str,
    suites: str,
    module: str | None,
    place: str,
    seed: int,
    seeds: int,
    executions: int,
    mode: str,
    as_json: bool,
) -> ExitCode:
    """Weaken each atomic of one SUITE, or of "all", by one step, and drop each fence.

    The engine makes each change at run time and runs the suites until one notices it. An order that
    no suite notices is stronger than necessary, or not tested: exit code 1.
    """
    weakening = Weakening(
        module=load_native(module or CHECKED),
        suites=choose_suites(load_suites(suites), (suite,)),
        programs=seeds,
        seed=seed,
        executions=executions,
        mode=mode,
        places=place,
    )
    results: list[WeakResult] = []
    with ProgressDisplay() as progress:
        progress.begin("unchanged code")
        weakening.check_unchanged()
        mutants = weakening.mutants()
        progress.begin("mutants", len(mutants))
        for mutant in mutants:
            results.append(weakening.result(mutant))
            progress.advance()
    unnoticed = sum(not result.suite for result in results)
    code = VIOLATION if unnoticed else CLEAN if results else NOTHING_EXERCISED
    if as_json:
        print_json({"exit_code": code, "mutants": [result.as_data() for result in results]})
        return code
    for line in report(results):
        click.echo(line)
    return code


def report(results: Sequence[WeakResult]) -> Iterator[str]:
    """Lines of text, first the mutants that no suite noticed."""
    noticed = [result for result in results if result.suite]
    unnoticed = [result for result in results if not result.suite]
    yield f"{len(results)} mutants: {len(noticed)} noticed, {len(unnoticed)} not"
    if unnoticed:
        yield "not noticed, so stronger than necessary or not tested:"
    for result in unnoticed:
        yield f"  {described(result)}: {result.executions:,} executions"
    if noticed:
        yield "noticed:"
    for result in noticed:
        found = f"{result.verdict} of {result.suite} after {result.executions:,} executions"
        yield f"  {described(result)}: {found}"


def described(result: WeakResult) -> str:
    mutant = result.mutant
    return f"{mutant.place}: {mutant.op} {mutant.order} -> {mutant.weaker}"
