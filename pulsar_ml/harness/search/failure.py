"""A failure of an execution under the engine, as a value: what failed, and all that repeats it.

The replay is exact on the build that the failure came from. On another build it is an attempt, and
says so: it follows the decisions that still fit, and the default policy fills the rest.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from pulsar_ml.errors import BadRecordError, NondeterminismError, UsageError
from pulsar_ml.harness.engine import SPINS, STEP_LIMIT, STORES, TURNS, Explorer
from pulsar_ml.harness.locations.names import Names
from pulsar_ml.harness.search.child import ENDED, MEMORY, PROCESSES, STUCK
from pulsar_ml.harness.search.lanes import WIDTH, lane_table
from pulsar_ml.harness.search.race import WORDS, Race, places_of_race, race_of, stack_of
from pulsar_ml.harness.search.symbols import describe_pc, interpreted_name
from pulsar_ml.harness.subjects.hash_seed import FIXED, hash_seed, other_hashes, seed_text
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.subjects.recipe import recipe_of
from pulsar_ml.harness.subjects.subject import Subject
from pulsar_ml.input_files import one_line
from pulsar_ml.versioned_json import build, read_object
from pulsar_ml.wording import counted

if TYPE_CHECKING:
    from pulsar_ml.harness.judges.oracle import Judge

VERSION = 1
KIND = "pulsar_ml failure"
SHORT = "pml1."
MOST_BYTES = 16 << 20  # length of a failure as text; the engine's largest programs stay far below
BLOCKED, ENDLESS = "blocked call", "endless loop"  # ends that take a while each time
# Failures whose last step is an access to the memory in question.
AT_LOCATIONS = ("data race", "use after free", "out of bounds", "uninitialised read")
# Why an execution of the same build ends without its failure.
UNCONTROLLED = "something outside the engine's control decides what the code does"
OTHER_CODE = (
    "code that the test imports has changed, or something outside the engine's control decides "
    "what the test does"
)
WRONG_ANSWERS = "wrong answers"  # the kind of a failure that a judge found

Decision = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed execution under the engine, as a value that :meth:`replay` repeats.

    Attributes:
        subject, build_id: name of the subject and its build.
        program: the program, as the JSON of :class:`Program`.
        mode, reuse, faults, step_limit: the engine's options; ``reuse`` as the execution used it.
        strategy, seed, execution: where the failure was found; "replay" and execution 0 after
            shrinking.
        decisions: the choices that differ from the default policy: (point, thread, kind, value); of
            a lost process those from which its executions departed.
        kind: one of the engine's ENDS, WRONG_ANSWERS, or how the process ended.
        rule: the id of the broken invariant, or "".
        message: one sentence.
        where: the stack of the failing access from the inside out, as function and file:line; for a
            data race the places of both accesses, the later one first.
        trace_hash: a hash of all steps in order; an exact replay has the same.
        module: importable name or path of the checked module with the subject; "": the product's.
        mutant: the mutant selected in that module; None for the unchanged code.
        races: False when data races were ignored.
        leaks: False when blocks that are never freed were ignored.
        race: both accesses of a data race, with the synchronisation of their threads.
        bound: the most preemptions or delays of a search.
        spins: the most turns of waiting loops that a search let go on without a pause.
        turns: the most turns of loops in one operation that a search followed.
        stores: the number of stores that a location remembered.
        lock_free: True when a thread was held back to see that the others can end.
        suppress: the known races that were passed over, as places.
        symmetry: True when equal threads began in the order of their numbers, of a lost process.
        preemptions: the most preemptions of a class, of a lost process; None for any number.
        apart: pairs of steps that executions of a lost process made meet, as of
            :func:`pulsar_ml.harness.engine.pairs_apart`.
        part: the part of a search that was explored; "" for the whole.
        recipe: how the subject was built from a source file, as the JSON of :class:`Recipe`; "" for
            one of a module.
        hash_seed: the value of PYTHONHASHSEED under which code of the interpreter ran, "random"
            for a seed that was drawn and has no name; "" for code that runs without it.
    """

    subject: str
    build_id: str
    program: str
    mode: str
    reuse: str
    faults: tuple[str, ...]
    step_limit: int
    strategy: str
    seed: int
    execution: int
    decisions: tuple[Decision, ...]
    kind: str
    rule: str
    message: str
    where: tuple[str, ...]
    trace_hash: int
    module: str = ""
    mutant: str | None = None
    races: bool = True
    race: Race | None = None
    bound: int = 2
    spins: int = SPINS
    lock_free: bool = False
    part: str = ""
    suppress: tuple[str, ...] = ()
    leaks: bool = True
    turns: int = TURNS
    stores: int = STORES
    recipe: str = ""
    hash_seed: str = ""
    symmetry: bool = False
    preemptions: int | None = None
    apart: tuple[tuple[int, ...], ...] = ()

    @property
    def ended_process(self) -> bool:
        """True when the execution ended its process or had to be ended with it.

        Such an execution is repeated from its seed and number, in a child process.
        """
        return self.kind in (ENDED, STUCK, MEMORY, PROCESSES)

    @property
    def signature(self) -> tuple[str, ...]:
        """Kind, rule and places: failures with equal signatures count as the same failure."""
        return signature(self.kind, self.rule, self.where)

    def engine_options(self) -> dict[str, Any]:
        """Return the options of the engine for other executions of the failure's program."""
        return {
            "mode": self.mode,
            "reuse": self.reuse,
            "faults": self.faults,
            "step_limit": self.step_limit,
            "races": self.races,
            "leaks": self.leaks,
            "suppress": self.suppress,
            "stores": self.stores,
        }

    def to_json(self) -> str:
        """Return the failure as JSON; :meth:`from_text` reads it."""
        return json.dumps(
            {"kind_of_record": KIND, "version": VERSION, **asdict(self)}, sort_keys=True
        )

    def short(self) -> str:
        """Return the failure as one printable word; :meth:`from_text` reads it."""
        packed = zlib.compress(self.to_json().encode(), 9)
        return SHORT + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    @staticmethod
    def from_text(text: str, what: str = "the failure") -> Failure:
        """Return the failure of its JSON or its short form.

        ``what`` names the text in messages. Raises BadRecordError for a damaged one, and for one of
        a newer version.
        """
        text = text.strip()
        if text.startswith(SHORT):
            body = text[len(SHORT) :]
            try:
                text = unpacked(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))).decode()
            except (binascii.Error, zlib.error, ValueError) as error:
                raise BadRecordError(f"{what} is damaged or truncated: {one_line(error)}") from None
        if len(text) > MOST_BYTES:
            raise BadRecordError(f"{what} is longer than {MOST_BYTES >> 20} MiB, so it is damaged")
        content = read_object(text, what, kind=KIND, kind_key="kind_of_record", versions=(VERSION,))
        return build(Failure, content, what)

    def replay(self, subject: Subject, judge: Judge | None = None) -> Replayed:
        """Repeat the execution under the engine, and return it with its trace.

        ``subject`` is the failure's subject, of a checked build. ``judge`` is the one that refused
        the answers, if that was the failure; without it only an execution with equal steps counts
        as the same failure. Raises UsageError for a failure that would end this process, too.
        """
        if self.ended_process:
            raise UsageError(
                f"{self.kind}: this execution ends its process; pulsar-ml replay repeats it in "
                "another"
            )
        judge = judge or subject.judge
        explorer = replay_explorer(self, subject)
        explorer.again(0)
        raw = explorer.failure() if explorer.failed() else {"thread": None}
        again = None
        refused = ""
        if self.kind == WRONG_ANSWERS and explorer.end() == "complete":
            if judge is not None:
                refused = judge(explorer)
            elif explorer.hashes()[0] == self.trace_hash:
                refused = self.message
        if explorer.failed() or refused:
            options = {
                "faults": self.faults,
                "step_limit": self.step_limit,
                "races": self.races,
                "leaks": self.leaks,
            }
            again = replace(
                of_recorded(explorer, 0, options, refused),
                strategy=self.strategy,
                seed=self.seed,
                execution=self.execution,
                module=self.module,
                mutant=self.mutant,
            )
        exact = (
            again is not None and again.kind == self.kind and again.trace_hash == self.trace_hash
        )
        same_build = self.build_id == str(subject.build_id)
        trace, checked = without_check(explorer.trace())
        thread = cast("int | None", raw["thread"])
        return Replayed(exact, same_build, again, trace, self.hash_seed, tuple(checked), thread)

    def summary(self, replayed: Replayed | None = None, location: str = "") -> str:
        """Describe the failure in a few lines: kind, size, places, and the result of its replay.

        ``location`` is the name of the memory at which the execution ended, or "".
        """
        program = Program.from_json(self.program)
        size = size_text(program, replayed.trace if replayed else ())
        lines = [
            f"{self.kind}{' ' + self.rule if self.rule else ''}: {self.message}",
            f"  {self.subject}, {size}mode {self.mode}, {counted(len(self.decisions), 'decision')}",
        ]
        lines += [f"  location: {location}"] * bool(location)
        lines += self.race.lines() if self.race else [f"  at {place}" for place in self.where]
        if self.hash_seed not in ("", FIXED):
            lines.append(f"  {seed_text(self.hash_seed)}")
        if replayed is not None:
            lines.append(f"  {replayed.verdict()}")
        return "\n".join(lines)

    def lane_table(
        self,
        trace: Sequence[dict[str, Any]],
        *,
        subject: Subject | None = None,
        width: int = WIDTH,
        sources: bool = True,
        names: Names | None = None,
        marks: Mapping[int, str] | None = None,
    ) -> str:
        """Return the trace of a replay with a column for each thread, and the lines it names.

        The lines are left out for a mutant: its file names lead to the unchanged sources.
        """
        program = Program.from_json(self.program)
        known = sources and self.mutant is None
        return lane_table(
            program,
            trace,
            subject=subject,
            width=width,
            sources=known,
            names=names,
            marks=marks,
        )

    def describe(
        self,
        subject: Subject,
        *,
        judge: Judge | None = None,
        width: int = WIDTH,
        remarks: Sequence[str] = (),
    ) -> str:
        """Replay the failure and return it as text: a summary, and a column for each thread.

        No column is wider than ``width`` characters. ``remarks`` follow the summary. The other
        arguments are those of :meth:`replay`.
        """
        again = self.replay(subject, judge)
        names = Names(again.trace)
        location = names.known(again.trace[-1]) if self.kind in AT_LOCATIONS and again.exact else ""
        table = self.lane_table(again.trace, subject=subject, width=width, names=names)
        return "\n".join([self.summary(again, location), *(f"  {each}" for each in remarks), table])


def without_check(
    trace: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the steps of a trace, and the last reads of the final check behind them."""
    at = len(trace)
    while at and int(trace[at - 1]["thread"]) < 0 and trace[at - 1]["op"] in ("load", "read"):
        at -= 1
    return trace[:at], trace[at:]


def size_text(program: Program, trace: Sequence[Mapping[str, Any]]) -> str:
    """Return the numbers of threads and operations, each with a comma behind it.

    A test function starts its threads itself: the trace says how many, and without one it is left
    out.
    """
    begun = {int(event["value"]) for event in trace if event["op"] == "spawn"}
    started = len(begun - set(range(len(program.threads))))
    if program.is_test:
        threads = len(program.threads) + started
        return f"{counted(threads, 'thread')}, " if trace else ""
    calls = sum(len(calls) for calls in program.threads)
    more = f" and {started:,} that operations started" if started else ""
    return f"{counted(len(program.threads), 'thread')}{more}, {counted(calls, 'operation')}, "


def unpacked(packed: bytes) -> bytes:
    """Decompress data of zlib; ValueError when it is truncated or would exceed MOST_BYTES."""
    unpacker = zlib.decompressobj()
    content = unpacker.decompress(packed, MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its end is missing")
    return content


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a replay.

    Attributes:
        exact: True when the replay took the same steps to the same failure.
        same_build: True when the subject's build is the one that failed.
        failure: the failure of the replay, or None.
        trace: the steps of the replay.
        hash_seed: that of the record.
        checked: the last reads of the final check, as steps of the main thread.
        thread: the thread that failed, -1 for the final check, None for no failure.
    """

    exact: bool
    same_build: bool
    failure: Failure | None
    trace: list[dict[str, Any]]
    hash_seed: str = ""
    checked: tuple[dict[str, Any], ...] = ()
    thread: int | None = None

    def verdict(self) -> str:
        """Describe the result in one sentence."""
        if self.exact:
            return "the failure was made again, step by step"
        build = "" if self.same_build else "this is not the build that failed; "
        hashes = other_hashes(self.hash_seed)
        if self.failure is None and not hashes and self.same_build:
            hashes = OTHER_CODE if self.hash_seed else UNCONTROLLED
        ended = "the execution ended without a failure"
        if self.failure is not None:
            ended = f"another execution failed: {self.failure.kind}: {self.failure.message}"
        return f"{build}{ended}" + (f"; {hashes}" if hashes else "")

    @property
    def proves_nothing(self) -> bool:
        """True when an execution of the same code ended without the failure: something that the
        replay does not repeat decides, too. Changed code that does not fail is mended.
        """
        changed = not self.same_build and not other_hashes(self.hash_seed)
        return self.failure is None and not changed


def capture(
    explorer: Explorer, number: int, options: Mapping[str, Any], refused: str = ""
) -> Failure:
    """Repeat execution ``number`` and return it as a failure.

    The last execution must have failed, or a judge must have refused it with the message
    ``refused``. Raises NondeterminismError when the repetition differs: something outside the
    engine's control decides what the code does.
    """
    first = explorer.hashes(), explorer.end()
    explorer.again(number)
    if (explorer.hashes(), explorer.end()) != first:
        raise NondeterminismError(
            f"execution {number} ended as {first[1]!r}, and as {explorer.end()!r} when it was "
            "repeated: something outside the engine's control decides what the code does"
        )
    return of_recorded(explorer, number, options, refused)


def of_recorded(
    explorer: Explorer, number: int, options: Mapping[str, Any], refused: str = ""
) -> Failure:
    """Return the failure of the execution that ``explorer.again`` ran last.

    ``refused`` is the judge's reason, or "".
    """
    raw = explorer.failure()
    race = race_of(explorer, number, raw) if raw["kind"] == "data race" else None
    return Failure(
        subject=explorer.subject.name,
        build_id=str(explorer.subject.build_id),
        program=explorer.program.to_json(),
        mode=explorer.mode,
        reuse=explorer.used()[2],
        faults=tuple(options.get("faults", ())),
        step_limit=int(options.get("step_limit", STEP_LIMIT)),
        strategy=explorer.used()[0],
        seed=explorer.seed,
        execution=number,
        decisions=explorer.decisions_made(),
        kind=WRONG_ANSWERS if refused else str(raw["kind"]),
        rule="" if refused else str(raw["invariant"]),
        message=refused
        or sentence(raw) + waiting_places(explorer, cast("Mapping[int, int]", raw["waiting"])),
        where=(race.second.place, race.first.place) if race else () if refused else places(raw),
        trace_hash=explorer.hashes()[0],
        races=bool(options.get("races", True)),
        leaks=bool(options.get("leaks", True)),
        bound=explorer.bound,
        spins=explorer.spins,
        lock_free=bool(options.get("lock_free", False)),
        race=race,
        suppress=explorer.suppress,
        turns=explorer.turns,
        stores=explorer.stores,
        recipe=recipe_of(explorer.subject),
        hash_seed=hash_seed() if explorer.subject.needs_gil else "",
    )


def signature(kind: str, rule: str, where: Sequence[str]) -> tuple[str, ...]:
    """Return kind, rule, and as many places as tell failures of that kind apart."""
    return kind, rule, *sorted(where[:2] if kind == "data race" else where[:1])


def signature_of(explorer: Explorer, refused: str = "") -> tuple[str, ...]:
    """Return the signature of what :func:`of_recorded` returns, without the rest of it."""
    if refused:
        return signature(WRONG_ANSWERS, "", ())
    raw = explorer.failure()
    both = places_of_race(explorer, raw) if raw["kind"] == "data race" else ()
    return signature(str(raw["kind"]), str(raw["invariant"]), both or places(raw))


def waiting_places(explorer: Explorer, waiting: Mapping[int, int]) -> str:
    """Return the place of each waiting thread, in brackets; "" when none waits.

    ``waiting`` maps each thread to the address where it is blocked; 0 for a thread in a loop, which
    is where it took its last step.
    """
    if not waiting:
        return ""
    last = {event["thread"]: event["pc"] for event in explorer.trace() if event["pc"]}
    pcs = {thread: pc or last.get(thread, 0) for thread, pc in waiting.items()}
    return f" ({', '.join(f'thread {thread} at {describe_pc(pc)}' for thread, pc in pcs.items())})"


def places(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the stack of the failing access from the inside out: see :func:`stack_of`."""
    return stack_of(raw["frames"])


def access_text(op: str, width: int) -> str:
    """Describe an access by its kind and its bytes, which a release of memory has not."""
    size = "" if op == "free" else f" of {counted(width, 'byte')}"
    return f"{WORDS.get(op, op)}{size}"


def sentence(raw: Mapping[str, Any]) -> str:
    """Describe the engine's failure in one sentence."""
    kind, thread, other = raw["kind"], raw["thread"], raw["other_thread"]
    who = f"thread {thread}" if int(thread) >= 0 else "the main thread"
    name = interpreted_name(int(raw["address"]))
    if kind == "data race" and name:
        return (
            f"{who}: {WORDS.get(raw['op'], raw['op'])} of {name}, unordered with thread {other}: "
            f"{raw['other_op']}"
        )
    if kind == "data race":
        return (
            f"{who}: {access_text(str(raw['op']), int(raw['width']))}, unordered with "
            f"thread {other}: {access_text(str(raw['other_op']), int(raw['other_width']))}"
        )
    if kind in ("use after free", "double free", "out of bounds", "leak"):
        text = f"{who}: {kind} at byte {raw['offset']} of a block of {raw['block_size']}"
        text += f", allocated at {describe_pc(int(raw['block_pc']))}"
        if raw["free_pc"]:
            text += f", freed by thread {other} at {describe_pc(int(raw['free_pc']))}"
        return text
    return str(raw["message"]) or f"{who}: {kind}"


def replay_explorer(failure: Failure, subject: Subject, **changes: Any) -> Explorer:
    """Prepare the engine for a replay of ``failure``, with ``changes`` of its options."""
    options = failure.engine_options() | {"decisions": failure.decisions} | changes
    return Explorer(subject, Program.from_json(failure.program), strategy="replay", **options)
