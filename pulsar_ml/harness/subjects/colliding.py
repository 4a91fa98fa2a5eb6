"""Small programs whose threads meet: few operations on few values, in tight worlds, from one seed.

:meth:`Program.generate` draws each call by itself, as long runs on real threads want it. A program
of a few calls drawn so rarely touches one thing twice. Here the seed first draws a program's theme:
which operations it uses, and for each argument one or two values that its calls share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from pulsar_ml.harness.subjects.program import (
    CALL,
    Program,
    check_size,
    draw_owners,
    resolve_mix,
    setting_ranges,
    thread_weights,
    words,
)
from pulsar_ml.harness.subjects.subject import Argument, Subject

STREAM = 4  # of the seed's random numbers
FEW = 4  # values from an end of a range
ROUND = 8  # every second amount of a range that is not short is a multiple
SHORT = 4 * ROUND  # values of a short range
AT_ONCE = 128  # random numbers
PLAIN = 4  # one program of so many draws each call, argument and setting by itself
ROOTS = 64  # roots are taken of so many times a weight
MOST_OPERATIONS = 4  # different ones of a program with a theme
LIFE_CHANGES = 4  # one argument of so many of a life is drawn anew
LIFE_REPEATS = 2  # likewise, of an operation that follows itself
MEETING = 3  # calls at most of a thread that meets a life


class Draws:
    """Random integers of one seed, in order."""

    def __init__(self, seed: int, stream: int = STREAM) -> None:
        self.seed, self.stream = seed, stream
        self.left: list[int] = []
        self.known = 0

    def below(self, limit: int) -> int:
        """Draw an integer of 0..limit-1."""
        if not self.left:
            # Each call of words() begins the stream again.
            more = words(self.seed, self.stream, self.known + AT_ONCE)[self.known :]
            self.left = more.tolist()[::-1]
            self.known += AT_ONCE
        return self.left.pop() * limit >> 64

    def one_in(self, times: int) -> bool:
        return self.below(times) == 0

    def weighted(self, weights: list[int]) -> int:
        """Draw an index in proportion to the weights, of which one is above 0."""
        point = self.below(sum(weights))
        for index, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return index
        raise AssertionError("a point lies below the sum of the weights")

    def magnitude(self, low: int, high: int) -> int:
        """Draw an integer of low..high whose distance from ``low`` has any number of bits."""
        span = high - low + 1
        return low + self.below(min(span, 1 << self.below(span.bit_length()) + 1))


def colliding_program(
    subject: Subject,
    seed: int,
    *,
    threads: tuple[int, int],
    operations: tuple[int, int],
    mix: Mapping[str, int] | None = None,
    others: Collection[str] = (),
    sources: Collection[str] = (),
    settings: Mapping[str, tuple[int, int]] | None = None,
    kinds: Collection[str] = (),
    lives: Sequence[Sequence[str]] = (),
    spans: Mapping[str, tuple[int, int]] | None = None,
    places: Collection[str] = (),
    duels: int = 0,
) -> Program:
    """Draw the program of ``seed``, 0 to 2**64 - 1, whose threads are likely to meet.

    ``threads`` and ``operations`` are inclusive ranges, and each thread draws its own length.
    ``mix``, ``settings`` and exclusive roles are those of :meth:`Program.generate`. ``others``
    names operations without a weight in the mix that a theme may have. ``sources`` names the
    operations that make what the others use: most programs have one of them, with which the
    first thread and half of the others begin. ``kinds`` names the settings whose values are
    alternatives and no sizes. ``lives`` are sequences of operations on one thing: in half of the
    programs a thread makes the calls of one, and each other thread up to three calls that may meet
    them; one thread alone makes the calls of several, one after the other. ``spans`` are ranges of
    arguments, by name, which lie within those of the operations. ``places`` names arguments that
    say in which container a call is: half of the lives end in another one. One of ``duels``
    programs, none for 0, is a duel: one call, of an operation of the life, meets it, and all are
    about one thing. Raises UsageError likewise.
    """
    check_size(subject, seed, threads[1], operations[1])
    draws = Draws(seed)
    n_threads = threads[0] + draws.below(threads[1] - threads[0] + 1)
    weights = resolve_mix(subject, mix)
    plain = draws.one_in(PLAIN)
    world = draw_world(subject, draws, settings or {}, kinds, plain=plain)
    owners = draw_owners(subject, seed, n_threads)
    rare, makers = ([subject.operation(name).code for name in names] for names in (others, sources))
    theme, source = (weights, None) if plain else draw_theme(draws, weights, rare, makers)
    arguments = Arguments(subject, draws, plain=plain, spans=spans)
    duel = bool(lives and duels) and n_threads > 1 and draws.one_in(duels)
    if duel or (lives and draws.one_in(2)):
        codes = [[subject.operation(name).code for name in life] for life in lives]
        if n_threads == 1:
            lists = [lives_in_turn(draws, arguments, codes, operations[1])]
        else:
            life = codes[draws.below(len(codes))][: operations[1]]
            if duel:
                lists = duel_lists(draws, arguments, life)
            else:
                lists = meeting_lists(draws, arguments, life, theme, n_threads)
            if places and draws.one_in(2):
                move_elsewhere(subject, lists[0][-1], places)
        return as_program(subject, seed, world, lists)
    lists = []
    for thread in range(n_threads):
        own = thread_weights(subject, theme, owners, thread, n_threads)
        if not any(own):  # the theme has only operations of other threads' roles
            own = thread_weights(subject, weights, owners, thread, n_threads)
        span = operations[1] - operations[0] + 1
        length = operations[0] + min(draws.below(span), span if plain else draws.below(span))
        calls = np.zeros(length if any(own) else 0, CALL)
        for number, call in enumerate(calls):
            code = draws.weighted(own)
            if number == 0 and source is not None and own[source]:
                code = source if thread == 0 or draws.one_in(2) else code
            call["code"] = code
            values = arguments.of(code)
            call["arguments"][: len(values)] = values
        lists.append(calls)
    return as_program(subject, seed, world, lists)


def as_program(
    subject: Subject, seed: int, world: Mapping[str, int], lists: Sequence[NDArray[np.void]]
) -> Program:
    """Return the program of these calls, which nobody changes from now on."""
    for calls in lists:
        calls.flags.writeable = False
    return Program(
        subject=subject.name,
        seed=seed,
        settings=world,
        operations=tuple(operation.name for operation in subject.operations),
        threads=tuple(lists),
    )


def meeting_lists(
    draws: Draws,
    arguments: Arguments,
    life: Sequence[int],
    theme: Sequence[int],
    threads: int,
) -> list[NDArray[np.void]]:
    """Draw the calls of threads of which one lives a life, by code, and the others meet it.

    Calls of the life have equal arguments, but one in four is drawn anew, and one in two of an
    operation that follows itself: the second is mostly about another thing. The others make few
    calls: of the life, or of the theme. Operations that belong to one thread do not occur.
    """
    operations = arguments.subject.operations
    known: dict[Argument, int] = {}
    meeting = [0 if one.role else weight for one, weight in zip(operations, theme, strict=True)]
    for code in life:
        meeting[code] += 1
    chosen = [list(life)]
    chosen += [
        [draws.weighted(meeting) for _ in range(1 + draws.below(MEETING))]
        for _ in range(1, threads)
    ]
    return [life_calls(draws, arguments, codes, known) for codes in chosen]


def duel_lists(draws: Draws, arguments: Arguments, life: Sequence[int]) -> list[NDArray[np.void]]:
    """Draw the calls of a thread that lives a life, by code, and the one call that meets it.

    All are about one thing, their amounts are small, and the one is of an operation of the life, so
    that a few executions are a large share of all that there are.
    """
    known: dict[Argument, int] = {}
    different = sorted({*life})
    meeting = [different[draws.below(len(different))]]
    return [duel_calls(draws, arguments, codes, known) for codes in (life, meeting)]


def move_elsewhere(subject: Subject, call: np.void, places: Collection[str]) -> None:
    """Change the arguments of a call that are named, each to the next value of its range."""
    for number, argument in enumerate(subject.operations[int(call["code"])].arguments):
        if argument.name in places:
            value = int(call["arguments"][number])
            call["arguments"][number] = value + 1 if value < argument.high else argument.low


def lives_in_turn(
    draws: Draws, arguments: Arguments, lives: Sequence[Sequence[int]], longest: int
) -> NDArray[np.void]:
    """Draw the calls of lives, by code, up to ``longest``; each has arguments of its own."""
    chosen: list[NDArray[np.void]] = []
    while (left := longest - sum(map(len, chosen))) > 0:
        life = lives[draws.below(len(lives))]
        chosen.append(life_calls(draws, arguments, life[:left], {}))
    return np.concatenate(chosen)


def life_calls(
    draws: Draws, arguments: Arguments, codes: Sequence[int], known: dict[Argument, int]
) -> NDArray[np.void]:
    """Draw calls with equal arguments, which ``known`` has or gets, but for those drawn anew."""
    operations = arguments.subject.operations
    calls = np.zeros(len(codes), CALL)
    for call, code, before in zip(calls, codes, [-1, *codes[:-1]], strict=True):
        call["code"] = code
        values = arguments.of(code)
        changes = LIFE_REPEATS if code == before else LIFE_CHANGES
        for place, argument in enumerate(operations[code].arguments):
            if argument in arguments.shared and not draws.one_in(changes):
                values[place] = known.setdefault(argument, values[place])
        call["arguments"][: len(values)] = values
    return calls


def duel_calls(
    draws: Draws, arguments: Arguments, codes: Sequence[int], known: dict[Argument, int]
) -> NDArray[np.void]:
    """Draw calls with equal arguments, which ``known`` has or gets, and with small amounts."""
    operations = arguments.subject.operations
    calls = np.zeros(len(codes), CALL)
    for call, code in zip(calls, codes, strict=True):
        call["code"] = code
        for place, argument in enumerate(operations[code].arguments):
            low, high = arguments.span(argument)
            if argument in arguments.shared:
                value = known.setdefault(argument, arguments.value(argument))
            else:
                value = low + draws.below(min(high - low + 1, FEW))
            call["arguments"][place] = value
    return calls


def draw_world(
    subject: Subject,
    draws: Draws,
    ranges: Mapping[str, tuple[int, int]],
    kinds: Collection[str],
    *,
    plain: bool = False,
) -> dict[str, int]:
    """Draw the settings, anywhere in their ranges for a plain program.

    Of other worlds half are tight, and the rest have settings of any kind.
    """
    tight = draws.one_in(2)
    world = {}
    for name, (low, high) in setting_ranges(subject, ranges).items():
        if plain or name in kinds or high - low < 2:
            world[name] = low + draws.below(high - low + 1)
            continue
        way = draws.below(3) // 2 if tight else draws.below(4)
        world[name] = (
            low,
            draws.magnitude(low, high),
            low + draws.below(high - low + 1),
            high,
        )[way]
    return world


def draw_theme(
    draws: Draws, weights: list[int], others: Collection[int], sources: list[int]
) -> tuple[list[int], int | None]:
    """Draw new weights, and the source among them, if there are sources; all by code.

    One program of eight keeps the mix, the others use a few operations: a source, or one drawn
    by the square of its weight, because the most common operations are those that the others need;
    sometimes one drawn by its weight; and others, drawn by the root of their weight.
    """
    source = sources[draws.below(len(sources))] if sources else None
    if draws.one_in(8):
        return weights, source
    roots = [isqrt(ROOTS * weight) for weight in weights]
    for code in others:
        roots[code] = roots[code] or isqrt(ROOTS)
    common = [weight * weight for weight in weights]
    chosen = {draws.weighted(common) if source is None else source}
    if draws.one_in(2):
        chosen.add(draws.weighted(weights))
    size = min(2 + draws.below(MOST_OPERATIONS - 1), sum(map(bool, roots)))
    while len(chosen) < size:
        chosen.add(draws.weighted(roots))
    even = draws.one_in(2)
    theme = [
        (1 if even else 1 + draws.below(3)) if code in chosen else 0 for code in range(len(weights))
    ]
    return theme, source


class Arguments:
    """The arguments of one program's calls.

    An argument that several operations take under one name and range, such as a key, says what a
    call is about: the program draws one to three of its values, and mostly uses these. Others are
    amounts, drawn anew for each call; many are round, so that they meet sums of lengths, which are
    round, too. A plain program shares no values.
    """

    def __init__(
        self,
        subject: Subject,
        draws: Draws,
        *,
        plain: bool = False,
        spans: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.subject, self.draws, self.plain = subject, draws, plain
        self.spans = spans or {}
        uses = Counter(
            argument for operation in subject.operations for argument in operation.arguments
        )
        self.shared = {
            argument: [self.any_value(argument) for _ in range(1 + draws.below(3))]
            for argument, times in uses.items()
            if times > 1
        }

    def learn(self, threads: Collection[NDArray[np.void]]) -> None:
        """Share the values of these calls instead, where they have any."""
        used: dict[Argument, dict[int, None]] = {}
        for call in (call for calls in threads for call in calls):
            arguments = self.subject.operations[int(call["code"])].arguments
            for argument, value in zip(arguments, call["arguments"].tolist(), strict=False):
                used.setdefault(argument, {})[value] = None
        self.shared |= {
            argument: list(values) for argument, values in used.items() if argument in self.shared
        }

    def of(self, code: int) -> list[int]:
        """Draw the arguments of a call of the operation."""
        return [self.value(argument) for argument in self.subject.operations[code].arguments]

    def value(self, argument: Argument) -> int:
        """Draw a shared value, sometimes a neighbour of one, or any value; or an amount."""
        shared = self.shared.get(argument)
        low, high = self.span(argument)
        if self.plain:
            return low + self.draws.below(high - low + 1)
        if shared is None and self.draws.one_in(2):
            value = low + self.draws.below(high - low + 1)
            if high - low < SHORT or self.draws.one_in(2):
                return value
            return max(low, value - value % ROUND)
        way = self.draws.below(8)
        if shared is None or way == 7:
            return self.any_value(argument)
        value = shared[self.draws.below(len(shared))]
        if way == 6:
            value += 1 - 2 * self.draws.below(2)
        return min(max(value, low), high)

    def span(self, argument: Argument) -> tuple[int, int]:
        """Return the range of an argument in these programs."""
        return self.spans.get(argument.name, (argument.low, argument.high))

    def any_value(self, argument: Argument) -> int:
        """Draw a value near the lower end, of any size, of the whole range, or the upper end."""
        low, high = self.span(argument)
        way = self.draws.below(8)
        if way < 3:
            return low + self.draws.below(min(high - low + 1, FEW))
        if way < 4:
            return self.draws.magnitude(low, high)
        return high if way == 7 else low + self.draws.below(high - low + 1)
