"""Damaged, truncated and invented files end in one sentence.

They change nothing, load no pickle, and need bounded memory. Every parser of records, failures,
runs and histories gets many wrong inputs, the same in each run of the tests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Arm, Round, Share
from pulsar_ml.campaign.store.columns import SCHEMA_VERSION
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.schema import METADATA, TRIALS
from pulsar_ml.campaign.trial.record import ReplayRecord
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.cli import main
from pulsar_ml.errors import BadRecordError, PulsarMlError, UsageError
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.history import RECORD, History, Signature
from pulsar_ml.harness.search.failure import MOST_BYTES, SHORT, Failure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.input_files import bounded_text
from pulsar_ml.report.findings import gather
from tests.bad_input.damage import MANY, damaged, forbid_pickle, other_values, survives
from tests.report.kit import failure_of, of_failure, row, violation, write_run


@pytest.fixture(autouse=True)
def no_pickle(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_pickle(monkeypatch)


# Texts --------------------------------------------------------------------------------------------


def replay_record() -> str:
    return str(violation("I1", "the count is 3")["replay"])


def program() -> str:
    return failure_of("race_met").program


def with_parsed_program(text: str) -> None:
    Program.from_json(Failure.from_text(text).program)


def plan() -> str:
    return json.dumps(Plan(("a", "b"), 0, 10, 2, TrialOptions()).to_json())


TEXTS: dict[str, tuple[Callable[[], str], Callable[[str], object]]] = {
    "replay record": (replay_record, ReplayRecord.from_json),
    "failure": (lambda: failure_of("race_met").to_json(), with_parsed_program),
    "short failure": (lambda: failure_of("use_after_free").short(), with_parsed_program),
    "program": (program, Program.from_json),
    "plan": (plan, lambda text: Plan.from_json(json.loads(text))),
    "round": (
        lambda: json.dumps(
            Round(3, 5, (Share(Arm("a", "pct"), 0, 9), Share(Arm("b", "pct"), 0, 2))).to_data()
        ),
        Round.from_text,
    ),
}
JSON = [name for name in TEXTS if name != "short failure"]


@pytest.mark.parametrize("name", TEXTS)
@MANY
@given(data=st.data())
def test_damaged_text(name: str, data: st.DataObject) -> None:
    make, parse = TEXTS[name]
    content = data.draw(damaged(make().encode()))

    def read(text: str) -> object:
        return parse(text) if name != "plan" else parse(text if is_json(text) else "null")

    survives(read, content.decode(errors="surrogateescape"))


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", JSON)
@MANY
@given(data=st.data())
def test_values_that_are_not_expected(name: str, data: st.DataObject) -> None:
    make, parse = TEXTS[name]
    survives(parse, data.draw(other_values(make())))


@pytest.mark.parametrize("name", ["replay record", "failure", "program", "plan", "round"])
@pytest.mark.parametrize("version", [99, "2", None, -1, 2**70])
def test_a_newer_version_is_refused(name: str, version: Any) -> None:
    make, parse = TEXTS[name]
    content = {**json.loads(make()), "version": version}
    with pytest.raises(PulsarMlError, match="version"):
        parse(json.dumps(content))


@pytest.mark.parametrize("name", JSON)
def test_what_is_nested_without_end_is_refused(name: str) -> None:
    if name == "plan":
        return  # this one is parsed from decoded JSON, not from text
    with pytest.raises(BadRecordError):
        TEXTS[name][1]("[" * 200_000)


def test_a_packed_bomb_is_refused_without_unpacking_it() -> None:
    packer = zlib.compressobj(1)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(200)) + packer.flush()
    text = SHORT + base64.urlsafe_b64encode(bomb).decode()
    tracemalloc.start()
    with pytest.raises(BadRecordError, match="unpacks to more than"):
        Failure.from_text(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MOST_BYTES


def test_a_packed_failure_without_its_end_is_refused() -> None:
    packed = base64.urlsafe_b64decode(failure_of("race_met").short().removeprefix(SHORT) + "==")
    with pytest.raises(BadRecordError, match="its end is missing"):
        Failure.from_text(SHORT + base64.urlsafe_b64encode(packed[:-4]).decode())


# Files --------------------------------------------------------------------------------------------


def test_a_pipe_a_device_and_a_folder_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, tmp_path / "nothing"):
        with pytest.raises(UsageError, match="cannot be read"):
            bounded_text(path, "the record")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    with pytest.raises(BadRecordError, match="larger than 0 MiB"):
        bounded_text(tmp_path / "large", "the record", most=1000)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(BadRecordError, match="not text"):
        bounded_text(tmp_path / "binary", "the record")


# Runs ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = [of_failure(failure_of("race_met")), violation("I1", "the count is 3")]
    rows = [row(seed, found=found if seed % 2 else []) for seed in range(20)]
    facts = {
        "plan": json.loads(plan()),
        "versions": {"python": "3"},
        "warnings": ["w"],
        "runner": {"registry": "a"},
    }
    return write_run(tmp_path_factory.mktemp("bad") / "run", rows, **facts)


def digest(directory: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        digest.update(path.relative_to(directory).as_posix().encode())
        digest.update(path.read_bytes() if path.is_file() else b"")
    return digest.hexdigest()


def reported(run: Path) -> None:
    """Runs the command in each format: it reads the run, or refuses it in one sentence."""
    before = digest(run)
    for kind in ("html", "json"):
        done = CliRunner().invoke(main, ["report", str(run), "--format", kind, "-o", "-"])
        assert done.exit_code in (0, 1, 2, 3, 4, 130), (done.exit_code, done.exception)
        assert done.exception is None or isinstance(done.exception, SystemExit), repr(
            done.exception
        )
        if done.exit_code == 2:
            assert done.stdout == ""
            assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert digest(run) == before


FILES = ("run.json", "trials/wave-00000.parquet", "violations/wave-00000.parquet")


@pytest.mark.parametrize("name", FILES)
@settings(parent=MANY, max_examples=25)
@given(data=st.data())
def test_a_damaged_file_of_a_run(
    run: Path, tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    copy = Path(shutil.copytree(run, tmp_path_factory.mktemp("copy") / "run"))
    (copy / name).write_bytes(data.draw(damaged((run / name).read_bytes())))
    reported(copy)


@settings(parent=MANY, max_examples=25)
@given(data=st.data())
def test_a_run_json_with_other_values(
    run: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    copy = Path(shutil.copytree(run, tmp_path_factory.mktemp("copy") / "run"))
    (copy / "run.json").write_text(data.draw(other_values((run / "run.json").read_text())))
    reported(copy)


@settings(parent=MANY, max_examples=20)
@given(data=st.data())
def test_rows_with_records_that_are_none(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    failure = of_failure(failure_of("race_met"))
    texts = (violation("I1", "x")["replay"], failure["replay"])
    found = {**failure, "replay": data.draw(st.one_of(*map(other_values, texts)))}
    found["signature"] = data.draw(
        st.sampled_from(["abc", "../../x", "", "\x00", "a" * 5000, "<b>"])
    )
    rows = [row(0, found=[{**found, "signature": "abc"}]), row(1)]
    run = write_run(tmp_path_factory.mktemp("rows") / "run", rows)
    path = run / "violations" / "wave-00000.parquet"
    table = pq.read_table(path)
    place = table.schema.get_field_index("signature")
    pq.write_table(
        table.set_column(place, table.schema.field(place), pa.array([found["signature"]])), path
    )
    reported(run)


def test_a_newer_run_and_newer_rows_are_refused(run: Path, tmp_path: Path) -> None:
    newer = Path(shutil.copytree(run, tmp_path / "newer"))
    content = json.loads((newer / "run.json").read_text())
    (newer / "run.json").write_text(json.dumps({**content, "version": 7}))
    with pytest.raises(BadRecordError, match="version 7, this release reads up to 2"):
        open_run(newer)
    (newer / "run.json").write_text(json.dumps(content))
    path = newer / "trials" / "wave-00000.parquet"
    (key,) = METADATA
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({key: str(SCHEMA_VERSION + 1).encode()}), path)
    with pytest.raises(BadRecordError, match="use a newer pulsar_ml"):
        gather(open_run(newer))


def test_rows_of_an_older_version_are_read(run: Path, tmp_path: Path) -> None:
    older = Path(shutil.copytree(run, tmp_path / "older"))
    path = older / "trials" / "wave-00000.parquet"
    (key,) = METADATA
    table = pq.read_table(path).drop_columns(["mode", "cut", "exhausted"])
    pq.write_table(table.replace_schema_metadata({key: b"1"}), path)
    assert gather(open_run(older)).summary.trials == 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop_columns(["seed"]), "no column seed"),
        (
            lambda table: table.set_column(0, "run_id", pa.array([1] * len(table))),
            "should be of type string",
        ),
        (
            lambda table: table.set_column(0, "run_id", pa.nulls(len(table), pa.string())),
            "has nulls",
        ),
        (lambda table: table.replace_schema_metadata(None), "no version of a schema"),
        (lambda table: table.append_column("seed", table["seed"]), "should be of type|damaged"),
    ],
)
def test_columns_that_do_not_fit_are_refused(
    run: Path, tmp_path: Path, change: Callable[[pa.Table], pa.Table], message: str
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    path = copy / "trials" / "wave-00000.parquet"
    pq.write_table(change(pq.read_table(path)), path)
    with pytest.raises(BadRecordError, match=message):
        gather(open_run(copy))


def test_texts_that_grow_beyond_all_measure_are_refused(run: Path, tmp_path: Path) -> None:
    """A column of a million equal texts of a megabyte compresses to a small file."""
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    path = copy / "trials" / "wave-00000.parquet"
    table = pa.concat_tables([pq.read_table(path)] * 100)
    texts = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(len(table), np.int32)), pa.array(["x" * (1 << 20)])
    )
    place = table.schema.get_field_index("host")
    bomb = table.set_column(place, "host", texts).replace_schema_metadata(METADATA)
    with pq.ParquetWriter(path, bomb.schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(bomb)
        writer.add_key_value_metadata(METADATA)
    schema = pq.read_schema(path)
    assert path.stat().st_size < 1 << 20
    assert schema.field("host").type == pa.string()
    with pytest.raises(BadRecordError, match="strings are larger than any"):
        gather(open_run(copy))


def test_a_run_with_a_device_for_a_file_is_refused(run: Path, tmp_path: Path) -> None:
    for name in FILES:
        copy = Path(shutil.copytree(run, tmp_path / name.replace("/", "-")))
        (copy / name).unlink()
        (copy / name).symlink_to("/dev/zero")
        with pytest.raises((BadRecordError, UsageError), match="plain file"):
            gather(open_run(copy))


def test_a_record_outside_of_the_run_is_not_named(run: Path) -> None:
    opened = open_run(run)
    for signature in ("../run", "../../etc/passwd", "/etc/passwd", "", ".", "a" * 1000, "a\x00"):
        assert opened.record(signature) is None
    assert len(TRIALS.names) > 10


# Histories ----------------------------------------------------------------------------------------


def history() -> History:
    records = np.zeros(3, RECORD)
    records["returned"] = [2, 4, 6]
    records["invoked"] = [1, 3, 5]
    return History((Signature("add", 1, "word"),), records)


@pytest.mark.parametrize("suffix", [".jsonl", ".arrow", ".parquet"])
@settings(parent=MANY, max_examples=40)
@given(data=st.data())
def test_damaged_histories(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("history")
    save_history(history(), folder / f"right{suffix}")
    assert len(load_history(folder / f"right{suffix}")) == 3
    path = folder / f"wrong{suffix}"
    path.write_bytes(data.draw(damaged((folder / f"right{suffix}").read_bytes())))
    survives(load_history, path)


@settings(parent=MANY, max_examples=40)
@given(data=st.data())
def test_damaged_histories_of_jepsen(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = "".join(
        f"{{:process {number} :type :{kind} :f :read :value {value}}}\n"
        for number in range(3)
        for kind, value in (("invoke", "nil"), ("ok", number))
    )
    path = tmp_path_factory.mktemp("history") / "wrong.edn"
    path.write_bytes(data.draw(damaged(lines.encode())))
    survives(load_history, path)
