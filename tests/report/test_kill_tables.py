"""Kill tables in a report: of a sweep over mutants, and of the product."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from pulsar_ml.campaign.store.store import RunStore
from tests.report.kit import row, write_run
from tests.report.reading import Reader, page_of, report


def test_a_kill_table_is_shown_and_judged(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.write_run({"run_id": "mutants", "status": "finished"})
    line = {
        "mutant": "H01", "title": "adds first", "suites": ["refcount"], "seeds": 20,
        "found": 3, "crashed": 0, "first_seed": 4, "invariants": ["I12"], "as_expected": True,
    }  # fmt: skip
    (tmp_path / "run" / "kill-table.json").write_text(json.dumps({"rows": [line]}))
    assert "adds first" in Reader(page_of(tmp_path / "run")).text
    assert report(tmp_path / "run").exit_code == 0
    (tmp_path / "run" / "kill-table.json").write_text(
        json.dumps({"rows": [line | {"as_expected": False}]})
    )
    assert report(tmp_path / "run").exit_code == 1
    (tmp_path / "run" / "kill-table.json").write_text(json.dumps({"rows": [{"mutant": 1}]}))
    assert report(tmp_path / "run").exit_code == 2


CELLS = """case,technique,source,seeds,found,spent,first,seconds,verdicts,size
H01,c11,0123,20,20,1843,8,0.001,"data race (9), I12 (9)",2 threads
H01,threads,0123,20,4,38126,1554,0.453,I12 (4),
M03,c11,0123,20,0,40000,,,,
"true core, refcount",c11,0123,3,0,60000,,,,
"""


def test_the_products_kill_table_is_shown_where_it_is_named_or_beside_the_run(
    tmp_path: Path,
) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    assert "Kill table of the product" not in page_of(run)
    table = tmp_path / "cells.csv"
    table.write_text(CELLS)
    sentence = "1 of 2 mutants were found, not M03; of 1 case of the true core none was blamed."
    for options in (["--kill-table", str(table)], []):
        page = Reader(page_of(run, *options)).text
        assert sentence in page
        assert "20/20 8" in page and "4/20 1554" in page and "data race (9), I12 (9)" in page
        data = json.loads(report(run, "--format", "json", *options).stdout)["product_kill_table"]
        assert (data["missed"], data["blamed"]) == (["M03"], [])
        assert data["cases"]["H01"][1] == {
            "technique": "threads", "seeds": 20, "found": 4, "programs": 38126, "first": "1554",
            "verdicts": "I12 (4)", "size": "",
        }  # fmt: skip
        text = report(run, "--format", "markdown", *options).stdout
        assert sentence in text
        assert "| H01 | 20/20 | 4/20 |" in text and "| M03 | 0/20 | - |" in text
        (run / "kill_table.csv").write_text(CELLS)
    assert report(run).exit_code == 0, "it is the run's"


def test_a_true_core_that_was_blamed_stands_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    (run / "kill_table.csv").write_text(CELLS.replace(",3,0,60000,,,,", ",3,1,60000,7,0.1,I5 (1),"))
    page = page_of(run)
    assert "of 1 case of the true core 1 was blamed" in Reader(page).text
    assert '<strong class="wrong">BLAMED</strong>: I5 (1)' in page


def test_what_a_kill_table_says_is_no_markup(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    hostile = "<script>alert(1)</script>|`x`"
    (run / "kill_table.csv").write_text(
        f"case,technique,source,seeds,found,spent,first,seconds,verdicts,size\n"
        f"{hostile},{hostile},0,1,1,1,{hostile},0,{hostile},\n"
    )
    assert "<script>alert" not in page_of(run)
    text = report(run, "--format", "markdown").stdout
    assert "<script>" not in text and "\\|" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("technique,", "way,"), "no column technique"),
        ((",20,20,", ",20,21,"), "line 2: .*21 of 20 seeds"),
        ((",20,4,", ",20,-4,"), "'-4' should be a count"),
        (("H01,threads", "H01,c11"), "H01 has c11 twice"),
        (("M03", "M" * 200), "1 to 100 characters"),
        ((",38126,1554,0.453,I12 (4),", ""), "the row is too short"),
        (("1843", "\u0661"), "should be a count"),
    ],
)
def test_a_kill_table_that_is_damaged_is_refused(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    run = write_run(tmp_path / "run", [row(0)])
    (run / "kill_table.csv").write_text(CELLS.replace(*change, 1))
    done = report(run)
    assert done.exit_code == 2
    assert re.search(message, done.stderr), done.stderr
    assert not (run / "report.html").exists()
