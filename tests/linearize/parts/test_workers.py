"""Worker processes: answers do not depend on their number, and their deaths lose nothing."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.harness.histories.files import save_history
from pulsar_ml.harness.histories.history import Call, History, Operation, history_of
from pulsar_ml.harness.linearize import ILLEGAL, LEGAL, UNKNOWN, Options, Verdict, check
from pulsar_ml.harness.linearize.parts import guide, rounds, workers
from pulsar_ml.harness.linearize.parts.workers import Death, Raised, WorkerError, Workers
from pulsar_ml.harness.linearize.searches import parts_for
from pulsar_ml.harness.models import CasRegister, KeyValueMap, Stack
from pulsar_ml.harness.models.model import Keyed

HISTORIES = 100
WRONG = (0, 0, 1, 1, 2, 2, 0)  # takes of a queue to which 0, 1 and 2 were put twice
FEW_STEPS = 15  # the limit of steps is reached while parts remain
PARENT = os.getpid()


def in_worker() -> bool:
    return os.getpid() != PARENT


@pytest.fixture(autouse=True)
def workers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers begin before the first part is searched: on fast machines, and without a guide."""
    monkeypatch.setattr(rounds, "SECONDS_ALONE", 0)
    monkeypatch.setattr(guide, "guide_for", lambda *_: None)
    monkeypatch.setitem(globals(), "PARENT", os.getpid())


def keyed_registers(seed: int) -> History:
    """Calls of two to five registers; some results are wrong, some calls do not return."""
    draw, operations = random.Random(seed), []
    for key in range(draw.randint(2, 5)):
        value: int | None = None
        for place in range(draw.randint(3, 8)):
            name = draw.choice(["read", "write", "cas"])
            count = {"read": 0, "write": 1, "cas": 2}[name]
            arguments = tuple(draw.randint(0, 2) for _ in range(count))
            result: int | None = None
            if name == "read":
                result = draw.choice([None, 0, 1, 2]) if draw.random() < 0.2 else value
            elif name == "write":
                value = arguments[0]
            else:
                result = value == arguments[0]
                value = arguments[1] if result else value
            begin = place + draw.random()
            end = begin + 4 * draw.random() if draw.random() < 0.9 else None
            operations.append(
                Operation(100 * key + place, name, (key, *arguments), result, begin, end)
            )
    return history_of(operations)


def maps(seed: int) -> History:
    """Puts and gets of three keys, some with a wrong result."""
    draw, operations = random.Random(seed), []
    values: dict[str, str] = {}
    for place in range(18):
        key = draw.choice("abc")
        begin = place + draw.random()
        end = begin + 5 * draw.random()
        if draw.random() < 0.5:
            values[key] = draw.choice("xyz")
            operations.append(Operation(place, "put", (key, values[key]), None, begin, end))
        else:
            wrong = draw.random() < 0.1
            result = "x" if wrong else values.get(key)
            operations.append(Operation(place, "get", (key,), result, begin, end))
    return history_of(operations)


def facts(verdict: Verdict) -> tuple[object, ...]:
    """Everything about a verdict; where a limit was met, not the size of the last search."""
    found = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    if verdict.answer == UNKNOWN:
        found["configurations"] = 0
        found["reason"] = found["reason"].partition(" in ")[0], found["reason"].partition(";")[2]
    return tuple(found.items())


def scrambled(seed: int) -> type[Workers]:
    """Return workers in this process, whose results come in a random order."""

    class Scrambled(Workers):
        def results(self, items: Sequence[Any]) -> Generator[tuple[int, Any], None, None]:
            order = list(range(len(items)))
            random.Random(seed).shuffle(order)
            for piece in order:
                yield piece, self.apart(items[piece])

        def apart(self, item: Any) -> Any:
            """Do an item; steps are counted by the parent, as those of another process are."""
            effort = self.effort
            steps, configurations = effort.steps, effort.configurations
            result = self.work(item)
            effort.steps, effort.configurations = steps, configurations
            return result

        effort: Any = None

    return Scrambled


def in_this_process(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    kind = scrambled(seed)
    begin = rounds.Rounds.__init__

    def init(self: rounds.Rounds, *arguments: Any) -> None:
        begin(self, *arguments)
        self.workers.effort = self.effort  # type: ignore[attr-defined]

    monkeypatch.setattr(rounds, "Workers", kind)
    monkeypatch.setattr(rounds.Rounds, "__init__", init)


@pytest.mark.parametrize("natively", [True, False])
@pytest.mark.parametrize("most_steps", [FEW_STEPS, 10**6])
def test_answers_do_not_depend_on_workers(
    natively: bool, most_steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer, the key, the core, the steps: all but the time, in whatever order parts end."""
    answers = set()
    for seed in range(HISTORIES):
        one, many = (
            Options(workers=count, natively=natively, most_steps=most_steps, explain=seed % 20 == 0)
            for count in (1, 3)
        )
        for history, model in (
            (keyed_registers(seed), Keyed(CasRegister())),
            (maps(seed), KeyValueMap()),
        ):
            with monkeypatch.context() as patched:
                in_this_process(patched, seed)
                found = check(history, model, options=many)
                assert facts(found) == facts(check(history, model, options=one)), seed
            answers.add(found.answer)
    assert answers == {LEGAL, ILLEGAL, UNKNOWN} - ({UNKNOWN} if most_steps > FEW_STEPS else set())


@pytest.mark.parametrize("natively", [True, False])
def test_answers_of_real_processes(natively: bool) -> None:
    for seed in range(4):
        history, model = keyed_registers(seed), Keyed(CasRegister())
        one, two = (
            check(history, model, options=Options(workers=count, natively=natively))
            for count in (1, 2)
        )
        assert facts(one) == facts(two)


class Register(CasRegister):
    """A register whose write of 2 is dangerous in a worker: ``deed`` happens to it."""

    def __init__(self, deed: str, once: Path | None = None) -> None:
        super().__init__()
        self.deed = deed
        self.once = once

    def step(self, state: Any, call: Call) -> Iterable[Any]:
        if call.name == "write" and call.arguments[0] == 2 and in_worker():
            if self.once is not None and self.once.exists():
                return super().step(state, call)
            if self.once is not None:
                self.once.touch()
            if self.deed == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.deed == "exit":
                os._exit(3)
            raise KeyError("only in a worker")
        return super().step(state, call)


def registers(*values: int, wrong: int = -1) -> History:
    """A register for each value, to which the value is written; key ``wrong`` reads another one."""
    operations = []
    for key, value in enumerate(values):
        operations.append(Operation(2 * key, "write", (key, value), None, 0, 1))
        result = 99 if key == wrong else value
        operations.append(Operation(2 * key, "read", (key,), result, 2, 3))
    return history_of(operations)


def test_a_worker_that_dies_once_loses_nothing(tmp_path: Path) -> None:
    model = Keyed(Register("kill", tmp_path / "died"))
    verdict = check(registers(1, 2, 3), model, options=Options(workers=2))
    assert (verdict.answer, verdict.remarks) == (
        LEGAL,
        ("a worker process died (SIGKILL); its calls were checked again",),
    )
    assert verdict.linearization is not None and len(verdict.linearization) == 6


@pytest.mark.parametrize(("deed", "how"), [("kill", "SIGKILL"), ("exit", "exit code 3")])
def test_a_part_whose_workers_die_is_an_error_with_its_key(deed: str, how: str) -> None:
    message = f"2 worker processes died .* key 1, the last by {how}; --workers 1 checks all"
    with pytest.raises(WorkerError, match=message):
        check(registers(1, 2, 3), Keyed(Register(deed)), options=Options(workers=2))


def test_the_death_of_workers_hides_no_illegal_part() -> None:
    verdict = check(
        registers(1, 2, 3, wrong=2),
        Keyed(Register("kill")),
        options=Options(workers=2, explain=False),
    )
    assert (verdict.answer, verdict.key) == (ILLEGAL, 2)


def test_an_exception_in_a_worker_comes_from_the_model_here() -> None:
    """An exception that only a worker raises is not believed: the work is done again here."""
    verdict = check(registers(1, 2), Keyed(Register("raise")), options=Options(workers=2))
    assert verdict.answer == LEGAL

    class Broken(CasRegister):
        def step(self, state: Any, call: Call) -> Iterable[Any]:
            raise KeyError(call.name)

    with pytest.raises(KeyError, match="write"):
        check(registers(1, 2), Keyed(Broken()), options=Options(workers=2))


def test_workers_end_with_their_context() -> None:
    with Workers(lambda item: (item, os.getpid()), 2) as pool:
        results = dict(pool.results([10, 20, 30]))
        processes = [one.process.pid for one in pool.workers]
    assert {place: item for place, (item, _) in results.items()} == {0: 10, 1: 20, 2: 30}
    assert {pid for _, pid in results.values()} <= set(processes)
    for pid in processes:
        assert pid is not None
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_results_of_workers_name_deaths_and_exceptions() -> None:
    def work(item: str) -> str:
        if item == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if item == "raise":
            raise ValueError("of the work")
        return item

    with Workers(work, 2) as pool:
        assert list(pool.in_order(["a", "kill", "raise", "b"])) == [
            "a", Death("SIGKILL"), Raised("ValueError: of the work"), "b",
        ]  # fmt: skip
        assert pool.deaths == ["SIGKILL"] * workers.MOST_DEATHS


def test_the_first_answer_wins() -> None:
    """A search and one just in time run side by side on a history without parts."""

    class Plain:
        """A queue without anything that shortens a search."""

        def init(self) -> tuple[object, ...]:
            return ()

        def step(self, state: tuple[object, ...], call: Call) -> Iterable[tuple[object, ...]]:
            if call.name == "enqueue":
                return [(*state, call.arguments[0])]
            if call.result is None:
                return [state] * (not state)
            return [state[1:]] if state and state[0] == call.result else []

    values = [Operation(at, "enqueue", (at % 3,), None, 0, 9) for at in range(6)]
    taken = [Operation(9, "dequeue", (), value, 10 + at, 11 + at) for at, value in enumerate(WRONG)]
    history = history_of([*values, *taken])
    verdict = check(history, Plain(), options=Options(workers=2, natively=False, explain=False))
    assert verdict.answer == ILLEGAL
    assert verdict.method in ("search", "just in time")


def test_parts_of_stacks_are_searched_one_by_one() -> None:
    """A part that has no calls among those of a search is legal, whatever the steps."""
    rows = [(key, value) for key in range(2) for value in range(2)]
    history = history_of(
        [
            *(Operation(0, "push", row, None, at, at) for at, row in enumerate(rows)),
            *(Operation(0, "pop", row[:1], row[1], 9 - at, 9 - at) for at, row in enumerate(rows)),
        ]
    )
    native = parts_for(Keyed(Stack()), history, 1 << 26)
    assert native is not None and native.takes(history.records) and native.parts == 2
    pieces = native.pieces(history.records)
    assert [piece.tolist() for piece in pieces] == [[0, 1, 4, 5], [2, 3, 6, 7]]
    for calls in pieces:
        answer, way, *_ = native.search_part(history.records, calls)
        assert (answer, sorted(way)) == (0, calls.tolist())
    for wrong in ([4, 8], [-1, 0]):
        with pytest.raises(ValueError, match="none of the records"):
            native.search_part(history.records, np.array(wrong, np.int32))
    with pytest.raises(TypeError, match="array of int32"):
        native.search_part(history.records, np.arange(2))  # type: ignore[arg-type]


def test_the_option_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "keys.jsonl"
    save_history(registers(1, 2, 3, wrong=1), path)
    arguments = ["linearize", str(path), "--model", "register", "--keyed", "--json", "--workers"]
    one, two = (CliRunner().invoke(main, [*arguments, count]) for count in ("1", "2"))
    assert one.exit_code == two.exit_code == 1
    assert json.loads(one.stdout) == json.loads(two.stdout)
    assert CliRunner().invoke(main, [*arguments, "0"]).exit_code == 2
