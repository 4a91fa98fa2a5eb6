"""The options of a sweep as one value, and the checks that they fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulsar_ml.campaign.plan.rounds import FLOOR
from pulsar_ml.campaign.trial.chunk import TRIAL_LIMITS
from pulsar_ml.campaign.trial.trial import (
    CHECKED,
    CONTROLLED,
    LEAK,
    MIXTURE,
    PRODUCT,
    THREADS,
    TrialOptions,
)
from pulsar_ml.distributed.session import local_master
from pulsar_ml.distributed.waiting import MASTER_SECONDS
from pulsar_ml.errors import UsageError
from pulsar_ml.harness.search.child import Limits
from pulsar_ml.terminal.command_line import DEFAULT_SUITES
from pulsar_ml.terminal.trust import is_installed

# Options of one command, which a run does not keep, and which its file cannot set.
NOT_KEPT = frozenset(
    {"out", "as_json", "resume", "progress", "progress_file", "waves", "seconds", "trust"}
    | {"on_command_line", "baseline"}
)
SPARK, POOL, INLINE = RUNNERS = ("spark", "pool", "inline")
DRIVER, EXECUTORS = ("driver", "executors")
ALL = "all"  # strategies
SEEDS = 1000
MANY_SEEDS = 10**9  # more than --seconds leave time for
EXHAUST = "exhaust"  # the strategy of --exhaust, unless one is named
# Searches of the same executions as exhaust, which reduces where it can and enumerates elsewhere.
LIKE_EXHAUST = ("reduce", "enumerate")
PART_EXECUTIONS = 100_000  # of a part of an exhaustive search


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepOptions:
    """The options of ``pulsar-ml sweep``; each is named and explained there.

    ``given`` are the names that the user wrote: an option that has no effect is refused only then.
    """

    suite: tuple[str, ...] = ()
    suites: str = DEFAULT_SUITES
    module: str | None = None
    mutant: str | None = None
    seed: int = 0
    seeds: int | None = None
    seconds: float | None = None
    threads: int | None = None
    operations: int | None = None
    noise: bool = True
    runs: int | None = None
    engine: str = THREADS
    mode: str | None = None
    strategy: tuple[str, ...] = ()
    executions: int | None = None
    bound: int | None = None
    ignore: tuple[str, ...] = ()
    spins: int | None = None
    turns: int | None = None
    stores: int | None = None
    rounds: int | None = None
    floor: float | None = None
    guided: bool = False
    exhaust: bool = False
    parts: int | None = None
    runner: str = SPARK
    master: str | None = None
    conf: tuple[str, ...] = ()
    environment: Path | None = None
    master_seconds: float = MASTER_SECONDS
    task_cpus: int | None = None
    workers: int | None = None
    rows: str = DRIVER
    speculate: bool = False
    ui: bool = False
    chunk_size: int | None = None
    chunk_seconds: float = 3.0
    wave_seconds: float = 30.0
    trial_seconds: float = TRIAL_LIMITS.wall
    trial_memory: int = (TRIAL_LIMITS.memory or 0) >> 20
    trial_address_space: int = (TRIAL_LIMITS.address_space or 0) >> 20
    forever: bool = False
    report_every: float = 30.0
    witnesses: int = 100
    waves: int | None = None
    out: Path | None = None
    resume: Path | None = None
    progress: str = "auto"
    progress_file: Path | None = None
    as_json: bool = False
    trust: bool = False
    baseline: tuple[Path, ...] = ()
    on_command_line: frozenset[str] = field(default=frozenset())

    @property
    def controlled(self) -> bool:
        return self.engine == CONTROLLED

    @property
    def open_ended(self) -> bool:
        """True when the clock alone, or nothing, ends the sweep."""
        return self.forever or (self.seconds is not None and self.seeds is None and not self._fixed)

    @property
    def _fixed(self) -> bool:
        """True for plans that are made for a number of seeds."""
        return self.exhaust or self.rounds is not None or len(self.strategies) > 1

    @property
    def seed_count(self) -> int:
        if self.seeds is not None:
            return self.seeds
        return MANY_SEEDS if self.open_ended else SEEDS

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies of the engine, with ``all`` spelled out."""
        return all_strategies() if ALL in self.strategy else self.strategy

    @property
    def native_module(self) -> str:
        return self.module or (CHECKED if self.controlled else PRODUCT)

    def trial_options(self) -> TrialOptions:
        """The options of each trial. UsageError for options of the engine without the engine."""
        executions = self.executions
        if self.exhaust and self.controlled and executions is None:
            executions = PART_EXECUTIONS
        first = self.strategies[0] if self.strategies else EXHAUST if self.exhaust else None
        search = {
            "mode": self.mode,
            "strategy": first,
            "executions": executions,
            "bound": self.bound,
            "spins": self.spins,
            "turns": self.turns,
            "stores": self.stores,
        }
        return TrialOptions(
            threads=self.threads,
            operations=self.operations,
            noise=self.noise and not self.controlled,
            module=self.native_module,
            mutant=self.mutant,
            runs=self._runs(),
            engine=self.engine,
            leaks=LEAK not in self.ignore,
            **engine_options(self.engine, search),
        )

    def _runs(self) -> int:
        """The runs of a trial. UsageError for a number of them under the engine."""
        if not self.controlled:
            return self.runs or 0
        if self.runs is not None:
            raise UsageError(
                f"--runs {self.runs} is for real threads; --engine {CONTROLLED} has --executions"
            )
        return 1

    def limits(self) -> Limits:
        return Limits(
            wall=self.trial_seconds,
            cpu=None,
            memory=self.trial_memory << 20,
            address_space=self.trial_address_space << 20,
        )


def from_elsewhere(command: Mapping[str, Any]) -> dict[str, Any]:
    """The stored options that name code, or a place that gets code, outside this installation."""
    named = {
        f"--{name}": command.get(name)
        for name in ("module", "suites", "master", "environment", "conf")
    }
    for name in ("--module", "--suites"):
        if is_installed(str(named[name] or "")):
            del named[name]
    if local_master(str(named["--master"] or "local")) is not None:
        del named["--master"]
    return {name: value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The options of a runner, as run.json keeps them.

    Attributes:
        runner: spark, pool or inline.
        cpus: cores of a task; None: a quarter of a trial's threads.
        registry: the module with the suites.
        environment: the archive of the executors' environment.
        master_seconds: the time that the master may take to answer.
        rows: the writer of rows, driver or executors.
        task_seconds: the time of a task; 0 makes each chunk a task.
    """

    runner: str
    master: str | None
    conf: dict[str, str]
    workers: int | None
    cpus: int | None
    registry: str
    environment: str | None = None
    master_seconds: float = MASTER_SECONDS
    rows: str = DRIVER
    task_seconds: float = 0.0
    speculate: bool = False


ONLY_FOREVER = {"waves": "--waves", "report_every": "--report-every", "witnesses": "--witnesses"}
ONLY_SPARK = {"rows": f"--rows {EXECUTORS}", "speculate": "--speculate"}


def check(options: SweepOptions) -> None:
    """Raises UsageError for options that contradict each other."""
    if options.forever:
        for name in ("seeds", "seconds"):
            if name in options.on_command_line:
                raise UsageError(
                    f"--forever has no end and takes no --{name}; --seed says where it begins"
                )
        if options.rounds is not None or len(options.strategies) > 1:
            raise UsageError(
                "--forever takes neither --rounds nor several strategies; they need --seeds"
            )
        if options.exhaust:
            raise UsageError("--forever has no end, and --exhaust comes to one; give one of them")
    for name, option in ONLY_FOREVER.items():
        if not options.forever and name in options.on_command_line:
            raise UsageError(f"{option} is for --forever")
    for name, option in ONLY_SPARK.items():
        if (
            options.runner != SPARK
            and name in options.on_command_line
            and getattr(options, name) != DRIVER
        ):
            raise UsageError(f"{option} is for --runner spark, not for {options.runner}")
    if options.floor is not None and options.rounds is None and len(options.strategies) < 2:
        raise UsageError(
            f"--floor {options.floor} is for --rounds; without rounds each suite gets the same"
        )
    if options.guided and (not options.controlled or (options.rounds or 0) < 2):
        raise UsageError(
            f"--guided is for --engine {CONTROLLED} and --rounds 2 or more: programs of the first "
            "round are where those of later rounds come from"
        )
    if options.guided and options.strategies and MIXTURE not in options.strategies:
        raise UsageError(f"--guided steers the strategy {MIXTURE}; name it as well")
    if not options.exhaust and options.parts is not None:
        raise UsageError(
            f"--parts {options.parts} is for --exhaust; otherwise a program is searched in one part"
        )
    if options.exhaust and (options.rounds is not None or len(options.strategies) > 1):
        raise UsageError("--exhaust takes one strategy and no --rounds")
    if options.exhaust and not options.controlled:
        raise UsageError(
            f"--exhaust is for --engine {CONTROLLED}; real threads cannot be searched to their end"
        )
    if not options.chunk_seconds > 0:
        raise UsageError(f"a chunk takes more than 0 seconds, not {options.chunk_seconds}")


def engine_options(engine: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The engine's options that have a value. UsageError when the engine is not used."""
    found = {name: value for name, value in values.items() if value is not None}
    if found and engine != CONTROLLED:
        raise UsageError(
            f"--{next(iter(found))} is for --engine {CONTROLLED}; real threads have none"
        )
    return found


def all_strategies() -> tuple[str, ...]:
    """All strategies of the engine whose executions differ: exhaust stands for its variants."""
    from pulsar_ml.harness.engine import OFFERED

    return tuple(name for name in OFFERED if name not in LIKE_EXHAUST)


def floor_of(options: SweepOptions) -> float:
    return FLOOR if options.floor is None else options.floor
