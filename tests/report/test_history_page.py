"""The page about a history: what is on it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.history import History, Operation, history_of
from pulsar_ml.harness.linearize import check
from pulsar_ml.harness.models import Register
from pulsar_ml.report import history_page
from tests import ROOT
from tests.report.kit import HOSTILE

ACCOUNT = ROOT / "docs" / "examples"


def page_of(history: History) -> tuple[str, dict[str, Any]]:
    """The page about a history of a register, and the data that its script draws."""
    model = Register(None)
    text = history_page.history_page(history, check(history, model), model, name="history.jsonl")
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return text, json.loads(data)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    model = f"{ACCOUNT / 'account.py'}:Account"
    done = CliRunner().invoke(
        main,
        ["linearize", str(ACCOUNT / "account.jsonl"), "--model", model, "--html", str(page)],
    )
    assert done.exit_code == 1, done.output
    text = page.read_text()
    assert "No legal order leads to operation 3 (line 4), withdraw(8) -&gt; True" in text


def test_operations_are_in_the_order_of_time_with_places_and_moments() -> None:
    rows = [
        Operation("b", "read", (), 1, 2.5, 3.5, number=4),
        Operation("a", "write", (1,), None, 1.5, None, crashed=True, number=2),
        Operation("b", "read", (), None, 4.5, 5.5, number=6),
    ]
    _, data = page_of(history_of(rows))
    shown = [(one[3], one[4], one[5]) for one in data["operations"]]
    assert shown == [
        ("write(1) -> ?", 1, "line 2"),
        ("read() -> 1", 0, "line 4"),
        ("read() -> None", 2, "line 6"),
    ]
    assert [one[1:3] for one in data["operations"]] == [[0, -1], [1, 2], [3, 4]]
    assert data["threads"] == [[0, "b"], [1, "a"]]
    assert data["blocked"] == 2 and sorted(data["core"]) == [1, 2]
    assert [data["operations"][place][3] for place in data["order"]] == [
        "write(1) -> ?",
        "read() -> 1",
    ]
    assert data["states"] == ["None", "1", "1"]


def test_a_legal_history_has_an_order_and_no_core() -> None:
    text, data = page_of(
        history_of([Operation(0, "write", (1,), None, 0, 1), Operation(0, "read", (), 1, 2, 3)])
    )
    assert data["order"] == [0, 1] and data["core"] == [] and data["blocked"] == -1
    assert "2 operations could have run one after the other" in text
    assert 'id="core"' not in text


def test_texts_of_the_history_are_never_markup() -> None:
    text, data = page_of(history_of([Operation(HOSTILE, "write", (HOSTILE,), None, 0, 1)]))
    assert "<img" not in text
    assert (
        HOSTILE[:10] in data["operations"][0][3] or repr(HOSTILE)[:10] in data["operations"][0][3]
    )


def test_a_long_history_is_cut_to_what_is_near_its_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_page, "MOST_OPERATIONS", 10)
    rows = [Operation(0, "write", (i,), None, 2 * i, 2 * i + 1) for i in range(100)]
    rows += [Operation(1, "read", (), 70, 180, 181)]
    text, data = page_of(history_of(rows))
    core = {data["operations"][place][3] for place in data["core"]}
    assert "read() -> 70" in core
    assert len(data["operations"]) < 20
    assert f"{101 - len(data['operations'])} operations far from the core" in text


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("h.jsonl", '\n{"process": 0, "type": "invoke", "f": "read", "value": null}\n', "line 2"),
        ("h.edn", "[{:process 0, :type :invoke, :f :read, :value nil, :index 7}]", "event 7"),
        ("h.log", "INFO\nINFO jepsen - 0 :invoke :read nil\n", "line 2"),
    ],
)
def test_operations_have_places_in_their_file(
    name: str, content: str, place: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    history = load_history(tmp_path / name, form="" if name != "h.log" else "log")
    assert history.place(0) == place
    assert history.select([0]).place(0) == place


def test_a_saved_history_has_the_places_of_its_file(tmp_path: Path) -> None:
    history = history_of([Operation(0, "write", (1,), None, 0, 1)])
    assert history.place(0) == ""
    save_history(history, tmp_path / "h.jsonl")
    assert load_history(tmp_path / "h.jsonl").place(0) == "line 2"
