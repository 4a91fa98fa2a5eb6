"""Programs: for each thread a list of calls, drawn from one seed.

Every choice is computed with integers from the raw 64-bit words of Philox (Salmon et al., SC 2011),
whose stream does not depend on NumPy's version, so a seed means the same program everywhere.
Settings, roles and each thread draw from separate streams: more operations make a program longer
and leave its beginning unchanged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

# Imported here: NumPy would load it at its first use, in each child of a supervisor again.
from numpy.random import Philox
from numpy.typing import NDArray

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.subjects.subject import Argument, Instance, Subject, SubjectOperation
from pulsar_ml.input_files import one_line
from pulsar_ml.versioned_json import check_keys, read_object

MAX_THREADS = 64
MAX_ARGUMENTS = 3
MAX_OPERATIONS = 10_000_000
VERSION = 1
TEST = ("test",)  # operations of a subject whose only one is a test function
KIND = "pulsar_ml program"

# The layout of PmlCall in subject.h.
CALL = np.dtype([("code", "<i4"), ("noise", "<i4"), ("arguments", "<i8", (MAX_ARGUMENTS,))])

# Values of PmlCall.noise, what the runner does before a call; above 0: pauses of a spin loop.
NOISE_NONE = 0
NOISE_YIELD = -1
NOISE_MOVE = -2
MAX_SPIN_BITS = 10

SETTINGS_STREAM = 1
ROLES_STREAM = 2
THREAD_STREAM = 1 << 32

# Disturbed calls among 65,536. Each thread of a program draws its own rate, so that fast threads
# meet slow ones.
NOISE_RATES = (0, 64, 512, 4096)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The calls of each thread, in order, with the settings of the instance. An immutable value.

    Attributes:
        subject: the subject's name.
        seed: the seed from which :meth:`generate` drew the program.
        settings: the creation settings of the instance.
        operations: the subject's operation names; the code of a call is an index into them.
        threads: for each thread a read-only array of dtype ``CALL`` (code, noise, arguments).
    """

    subject: str
    seed: int
    settings: Mapping[str, int]
    operations: tuple[str, ...]
    threads: tuple[NDArray[np.void], ...]

    @staticmethod
    def generate(
        subject: Subject,
        seed: int,
        *,
        threads: int,
        operations: int,
        mix: Mapping[str, int] | None = None,
        settings: Mapping[str, tuple[int, int]] | None = None,
        noise: bool = True,
    ) -> Program:
        """Draw the program of ``seed``, 0 to 2**64 - 1.

        It has ``threads`` threads, 1 to 64, with ``operations`` calls each. ``mix`` gives
        operations their weights; operations that it does not name are left out; without a mix the
        subject's own weights apply. ``settings`` narrows the ranges of creation settings, both ends
        inclusive. All operations of an exclusive role go to one thread that the seed chooses, and
        their share of its calls grows with the number of threads, so that the mix as a whole is
        kept. A thread that may call no operation of the mix gets none. ``noise`` lets some calls
        begin with a pause, a yield or a move to another processor, which only real threads obey.

        Raises UsageError for numbers out of range and for names that the subject does not have.
        """
        check_size(subject, seed, threads, operations)
        weights = resolve_mix(subject, mix)
        owners = draw_owners(subject, seed, threads)
        return Program(
            subject=subject.name,
            seed=seed,
            settings=draw_settings(subject, seed, settings or {}),
            operations=tuple(operation.name for operation in subject.operations),
            threads=tuple(
                thread_calls(
                    subject,
                    seed,
                    thread,
                    operations,
                    thread_weights(subject, weights, owners, thread, threads),
                    noise,
                )
                for thread in range(threads)
            ),
        )

    @staticmethod
    def of_test(subject: Subject, threads: int = 1) -> Program:
        """Return the program of a test function: each of ``threads`` threads calls it once."""
        return Program.generate(subject, 0, threads=threads, operations=1, noise=False)

    @property
    def is_test(self) -> bool:
        """True for the program of a test function, which starts threads itself."""
        return self.operations == TEST

    def digest(self) -> str:
        """Return sixteen hexadecimal digits that differ between programs."""
        digest = hashlib.sha256(
            json.dumps([self.subject, sorted(self.settings.items()), self.operations]).encode()
        )
        for calls in self.threads:
            digest.update(len(calls).to_bytes(8, "little"))
            digest.update(calls.tobytes())
        return digest.hexdigest()[:16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Program):
            return NotImplemented
        return self.seed == other.seed and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash((self.seed, self.digest()))

    def to_json(self) -> str:
        """Return a JSON object, in which a call is [code, noise, arguments...]."""
        threads = [
            np.column_stack([calls["code"], calls["noise"], calls["arguments"]]).tolist()
            for calls in self.threads
        ]
        content = {
            "kind": KIND,
            "version": VERSION,
            "subject": self.subject,
            "seed": self.seed,
            "settings": dict(self.settings),
            "operations": list(self.operations),
            "threads": threads,
        }
        return json.dumps(content)

    @staticmethod
    def from_json(text: str) -> Program:
        """Return the program of ``text``; BadRecordError for a damaged one, or a newer version."""
        what = "the program"
        content = check_keys(
            read_object(text, what, kind=KIND, versions=(VERSION,)),
            {
                "subject": str,
                "seed": int,
                "settings": Mapping[str, int],
                "operations": tuple[str, ...],
                "threads": list,
            },
            what,
        )
        try:
            content["threads"] = tuple(calls_from_rows(rows) for rows in content["threads"])
        except (TypeError, ValueError, OverflowError) as error:
            raise BadRecordError(f"{what} is damaged: {one_line(error)}") from None
        return Program(**content)


def calls_from_rows(rows: list[list[int]]) -> NDArray[np.void]:
    calls = np.zeros(len(rows), CALL)
    if rows:
        words = np.array(rows, dtype=np.int64)
        if words.shape != (len(rows), 2 + MAX_ARGUMENTS):
            raise ValueError(f"a call should be {2 + MAX_ARGUMENTS} integers")
        if np.abs(words[:, :2]).max() > 2**31 - 1:
            raise ValueError("a code or a noise is outside 32 bits")
        calls["code"] = words[:, 0]
        calls["noise"] = words[:, 1]
        calls["arguments"] = words[:, 2:]
    calls.flags.writeable = False
    return calls


def call_text(program: Program, thread: int, number: int, subject: Subject | None = None) -> str:
    """Return a call as text; with ``subject``, only the arguments that the operation has."""
    call = program.threads[thread][number]
    arguments = call["arguments"].tolist()
    if subject is not None:
        arguments = arguments[: len(subject.operations[int(call["code"])].arguments)]
    if program.is_test:
        return f"{program.subject}()"
    return f"{program.operations[int(call['code'])]}({', '.join(map(str, arguments))})"


def possible_pairs(
    subject: Subject, mix: Mapping[str, int] | None, threads: int
) -> list[tuple[str, str]]:
    """Return the pairs of operations that can overlap: both in the mix, and not of one role."""
    if threads < 2:
        return []
    weights = resolve_mix(subject, mix)
    used = [operation for operation in subject.operations if weights[operation.code]]
    return [
        (first.name, second.name)
        for i, first in enumerate(used)
        for second in used[i:]
        if first.role == 0 or first.role != second.role
    ]


def check_fits(program: Program, instance: Instance) -> None:
    """Check that native code may read the program's arrays for calls of the instance.

    Raises ValueError for another subject, another number of threads or unknown operation codes, and
    TypeError for arrays of another layout.
    """
    subject = instance.subject
    names = tuple(operation.name for operation in subject.operations)
    if program.subject != subject.name or program.operations != names:
        raise ValueError(
            f"the program is for subject {program.subject!r} with operations {program.operations}, "
            f"the instance is of {subject.name!r} with operations {names}"
        )
    if not 1 <= len(program.threads) <= MAX_THREADS or len(program.threads) != instance.threads:
        raise ValueError(
            f"the program has {len(program.threads)} threads, the instance was created for "
            f"{instance.threads}; both should be the same, 1 to {MAX_THREADS}"
        )
    for number, calls in enumerate(program.threads):
        if calls.dtype != CALL or calls.ndim != 1 or not calls.flags.c_contiguous:
            raise TypeError(
                f"the calls of thread {number} should be a contiguous array of program.CALL, "
                f"not of {calls.dtype} with shape {calls.shape}"
            )
        if len(calls) and not 0 <= int(calls["code"].min()) <= int(calls["code"].max()) < len(
            names
        ):
            raise ValueError(f"thread {number} has an operation code outside 0..{len(names) - 1}")


def check_size(subject: Subject, seed: int, threads: int, operations: int) -> None:
    """Raise UsageError for a seed, or a number of threads or calls, that no program has."""
    check_range("seed", seed, 0, 2**64 - 1)
    check_range("threads", threads, 1, MAX_THREADS)
    check_range("operations per thread", operations, 1, MAX_OPERATIONS)
    if subject.max_threads and threads > subject.max_threads:
        raise UsageError(
            f"subject {subject.name!r} takes at most {subject.max_threads} threads, not {threads}"
        )


def check_range(what: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise UsageError(f"{what} is {value}; it should be between {low} and {high}")


def resolve_mix(subject: Subject, mix: Mapping[str, int] | None) -> list[int]:
    """Return the weight of each operation, by code."""
    if not mix:
        weights = [operation.weight for operation in subject.operations]
    else:
        known = [operation.name for operation in subject.operations]
        for name, weight in mix.items():
            if name not in known:
                raise UsageError(
                    f"subject {subject.name!r} has no operation {name!r}; it has: {', '.join(known)}"
                )
            check_range(f"the weight of {name}", weight, 0, 1_000_000)
        weights = [mix.get(name, 0) for name in known]
    if not any(weights):
        raise UsageError(
            f"no operation of subject {subject.name!r} has a weight above 0, so there is nothing to run"
        )
    return weights


def words(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    return Philox(key=np.array([seed, stream], dtype=np.uint64)).random_raw(count)


def draw_owners(subject: Subject, seed: int, threads: int) -> dict[int, int]:
    """Return the thread that owns each exclusive role."""
    roles = sorted({operation.role for operation in subject.operations if operation.role})
    drawn = words(seed, ROLES_STREAM, len(roles)).tolist() if roles else []
    return {role: (word >> 32) * threads >> 32 for role, word in zip(roles, drawn, strict=True)}


def setting_ranges(
    subject: Subject, ranges: Mapping[str, tuple[int, int]]
) -> dict[str, tuple[int, int]]:
    """Return the inclusive range of each setting: that of ``ranges``, or the subject's own."""
    known = {setting.name: setting for setting in subject.settings}
    for name, (low, high) in ranges.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise UsageError(f"subject {subject.name!r} has no setting {name!r}; it has: {names}")
        allowed = known[name]
        if not allowed.low <= low <= high <= allowed.high:
            raise UsageError(
                f"the range {low}..{high} of setting {name} should lie within {allowed.low}..{allowed.high}"
            )
    return {name: ranges.get(name, (setting.low, setting.high)) for name, setting in known.items()}


def draw_settings(
    subject: Subject, seed: int, ranges: Mapping[str, tuple[int, int]]
) -> dict[str, int]:
    allowed = setting_ranges(subject, ranges)
    if not allowed:
        return {}
    drawn = words(seed, SETTINGS_STREAM, len(allowed))
    return {
        name: low + (int(word) * (high - low + 1) >> 64)
        for (name, (low, high)), word in zip(allowed.items(), drawn, strict=True)
    }


def thread_weights(
    subject: Subject, weights: list[int], owners: Mapping[int, int], thread: int, threads: int
) -> list[int]:
    """Return the weights of one thread: the owner of a role gets the weight of all threads."""

    def weight(operation: SubjectOperation) -> int:
        if operation.role == 0:
            return weights[operation.code]
        return weights[operation.code] * threads if owners[operation.role] == thread else 0

    return [weight(operation) for operation in subject.operations]


def thread_calls(
    subject: Subject, seed: int, thread: int, operations: int, weights: list[int], noise: bool
) -> NDArray[np.void]:
    total = sum(weights)
    calls = np.zeros(operations if total else 0, CALL)
    if total:
        # One row per call: a word for operation and noise, then one for each argument that some
        # operation has. The first row is the thread's own.
        width = 1 + max(len(operation.arguments) for operation in subject.operations)
        rows = words(seed, THREAD_STREAM + thread, (operations + 1) * width).reshape(
            operations + 1, width
        )
        first = rows[1:, 0]
        codes = np.searchsorted(np.cumsum(weights), scaled(first, np.uint64(total)), side="right")
        calls["code"] = codes
        for index in range(width - 1):
            calls["arguments"][:, index] = draw_argument(subject, index, codes, rows[1:, 1 + index])
        if noise:
            calls["noise"] = draw_noise(int(rows[0, 0]), first)
    calls.flags.writeable = False
    return calls


def scaled(word: NDArray[np.uint64], span: NDArray[np.uint64] | np.uint64) -> NDArray[np.int64]:
    """Scale the upper half of each word to 0..span-1; spans up to 2**32."""
    high = word >> np.uint64(32)
    return ((high * span) >> np.uint64(32)).astype(np.int64)


def draw_argument(
    subject: Subject, index: int, codes: NDArray[np.int64], drawn: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """Draw argument ``index`` of all calls: small ranges by scaling, wide ones by remainder."""
    lows = np.zeros(len(subject.operations), np.int64)
    spans = np.ones(len(subject.operations), np.uint64)
    wide: list[tuple[int, Argument]] = []
    for operation in subject.operations:
        if index < len(operation.arguments):
            argument = operation.arguments[index]
            lows[operation.code] = argument.low
            if width_of(argument) <= 2**32:
                spans[operation.code] = width_of(argument)
            else:
                wide.append((operation.code, argument))
    values = lows.take(codes) + scaled(drawn, spans.take(codes))
    for code, argument in wide:
        where = codes == code
        offset = drawn[where]
        if width_of(argument) < 2**64:
            offset = offset % np.uint64(width_of(argument))
        # Two's complement: adding as unsigned numbers wraps to the right signed one.
        values[where] = (offset + np.uint64(argument.low % 2**64)).astype(np.int64)
    return values


def width_of(argument: Argument) -> int:
    return argument.high - argument.low + 1


def draw_noise(style: int, drawn: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Draw the noise before each call from the lower half of its word.

    Mostly spins of 1 to 1024 pauses, some yields, a few moves to another processor.
    """
    noise = np.full(len(drawn), NOISE_NONE, np.int64)
    lower = (drawn & np.uint64(0xFFFFFFFF)).astype(np.int64)
    where = np.flatnonzero((lower >> 16) < NOISE_RATES[style % len(NOISE_RATES)])
    chosen = lower[where]
    kind = (chosen >> 12) & 15
    spins = np.left_shift(np.int64(1), ((chosen >> 8) & 15) % (MAX_SPIN_BITS + 1))
    # A move names how many processors further to go.
    noise[where] = np.select(
        [kind == 15, kind >= 10], [NOISE_MOVE - (chosen & 0xFF), NOISE_YIELD], spins
    )
    return noise
