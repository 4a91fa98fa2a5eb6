"""Every file that a command or class reads, with a good example and the function that reads it.

``READS`` in test_parsers.py holds this list against the sources.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

import numpy as np

from pulsar_ml import Position
from pulsar_ml._core import AckState
from pulsar_ml.campaign.local.records import read_record
from pulsar_ml.campaign.plan.plan import Plan
from pulsar_ml.campaign.plan.rounds import Arm, Round, Share
from pulsar_ml.campaign.run.resume import past_of
from pulsar_ml.campaign.shrink.shrunk import (
    SMALLER,
    ShrinkState,
    Shrunk,
    Size,
    digest_of,
    state_path,
)
from pulsar_ml.campaign.store.collection import collect
from pulsar_ml.campaign.store.read_run import open_run
from pulsar_ml.campaign.store.store import RunStore
from pulsar_ml.campaign.trial.trial import TrialOptions
from pulsar_ml.config import read_broker_conf, read_mapping
from pulsar_ml.distributed.machines import cluster
from pulsar_ml.harness.building.build_call import BuildCall, read_call
from pulsar_ml.harness.causes.changes import Order
from pulsar_ml.harness.causes.hints import Hint, Hints
from pulsar_ml.harness.causes.hints_file import read_file, write_hints
from pulsar_ml.harness.histories.files import load_history, save_history
from pulsar_ml.harness.histories.history import RECORD, History, Signature
from pulsar_ml.harness.search.failure import Failure
from pulsar_ml.harness.subjects.program import Program
from pulsar_ml.harness.testing.known import read_baseline
from pulsar_ml.input_files import bounded_text
from pulsar_ml.managed_ledger.cursors.cursor_metadata import (
    CHECKED,
    MAGIC,
    VERSION,
    decode,
    encode,
)
from pulsar_ml.managed_ledger.storage.disk import DiskStorage
from pulsar_ml.report.findings import KILL_TABLE, gather
from pulsar_ml.report.kill_cells import read_kill_cells
from pulsar_ml.simulate.scrape import scraped_workload
from pulsar_ml.simulate.workload import load_workload, workload_text
from stress.mutants.faults import results as faults
from stress.mutants.table import results
from tests.report.kit import failure_of, of_failure, row, violation, write_run


@dataclass(frozen=True, slots=True)
class Parser:
    """Reads one kind of file.

    Attributes: make: writes one that is right into a directory and says which file it is. read:
        raises a PulsarMlError of one sentence for one that is wrong. version: of a JSON object, the
        place of its version; "" for other files. lines: whether the message may have a line for
        each thing that is wrong. binary: whether it is no text; texts get what texts may have
        wrong. writes: whether what it reads is also what it writes: then only what it refuses stays
        as it is. file: whether it is read as a file, and not as bytes that come from elsewhere.
    """

    make: Callable[[Path], Path]
    read: Callable[[Path], object]
    version: str = ""
    lines: bool = False
    binary: bool = False
    file: bool = True
    writes: bool = False


def text_file(name: str, text: Callable[[], str]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_text(text(), encoding="utf-8")
        return path

    return make


def known_text() -> str:
    return '[[known]]\nsignature = "5f0c1d2e3a4b"\nreason = "old"\nuntil = 2027-03-01\n'


# Records ------------------------------------------------------------------------------------------


def read_failure(path: Path) -> None:
    failure = Failure.from_text(bounded_text(path, "the failure"))
    Program.from_json(failure.program)


def hints_file(folder: Path) -> Path:
    change = Order((1,), "push queue.h:130", "store", "relaxed", "release")
    found = Hints((Hint((change,), 17, True),), 5, 3)
    return write_hints(folder / "failure.json", failure_of("race_met"), found, ("why",), "then")


# Runs ---------------------------------------------------------------------------------------------


def run_file(name: str) -> Callable[[Path], Path]:
    """A file of a run's directory."""

    def make(folder: Path) -> Path:
        found = [of_failure(failure_of("race_met")), violation("I1", "the count is 3")]
        rows = [
            row(seed, chunk_id=seed // 5, found=found if seed % 2 else []) for seed in range(10)
        ]
        options = TrialOptions(engine="controlled")
        facts = {
            "run_id": "made-up",
            "build_id": "a-build",
            "plan": Plan(("made_up",), 0, 20, 4, options).to_json(),
            "runner": {"registry": "pulsar_ml.suites.registry"},
            "warnings": ["w"],
        }
        run = write_run(folder / "run", rows, **facts)
        table = [
            {
                "mutant": "M01", "title": "t", "suites": ["a"], "invariants": ["I1"], "seeds": 3, "found": 1,
                "crashed": 0, "as_expected": True,
            }
        ]  # fmt: skip
        (run / KILL_TABLE).write_text(json.dumps({"version": 1, "rows": table}))
        return run / name

    return make


def run_in_rounds(folder: Path) -> Path:
    run = run_of(run_file("run.json")(folder))
    facts = json.loads((run / "run.json").read_text())
    plan = {**facts["plan"], "seeds": 10, "pieces": 2}
    settings = {"rounds": 1, "floor": 0.2, "strategies": ["pct"]}
    (run / "run.json").write_text(
        json.dumps({**facts, "version": 2, "plan": plan, "rounds": settings})
    )
    path = run / "rounds" / "round-00000.json"
    path.parent.mkdir()
    path.write_text(json.dumps(Round(0, 5, (Share(Arm("made_up", "pct"), 0, 10),)).to_data()))
    return path


def searched_run(folder: Path) -> Path:
    """The trials of one that searches to the end, of which the first stage is there."""
    options = TrialOptions(engine="controlled", strategy="preemptions")
    rows = [
        row(seed, chunk_id=seed, strategy="preemptions", rest="0:0/2" if seed else "")
        for seed in range(4)
    ]
    facts = {
        "run_id": "made-up",
        "build_id": "a-build",
        "plan": Plan(("made_up",), 0, 4, 4, options).to_json(),
        "runner": {"registry": "pulsar_ml.suites.registry"},
        "search": {"parts": 3},
    }
    return write_run(folder / "run", rows, **facts) / "trials" / "wave-00000.parquet"


def smaller_failure(folder: Path) -> Path:
    run = run_of(run_file("run.json")(folder))
    found = of_failure(failure_of("race_met"))
    sizes = Size(2, 9, 3, 50), Size(2, 2, 1, 12)
    state = ShrinkState(
        digest_of(found["replay"]), 100, Shrunk(SMALLER, "", found["replay"], *sizes)
    )
    store = RunStore.reopen(run)
    store.write_shrunk(found["signature"], state)
    store.close()
    return state_path(run, found["signature"])


def run_of(path: Path) -> Path:
    return path if (path / "run.json").exists() or path.name == "run" else run_of(path.parent)


def reported(path: Path) -> None:
    gather(open_run(run_of(path)))


def resumed(path: Path) -> None:
    past_of(run_of(path)).store.close()


def collected(path: Path) -> None:
    into = path.with_name("collected")
    try:
        collect(open_run(run_of(path)), into)
    finally:
        shutil.rmtree(into, ignore_errors=True)


# Histories ----------------------------------------------------------------------------------------


def history_file(suffix: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        records = np.zeros(3, RECORD)
        records["returned"] = [2, 4, 6]
        records["invoked"] = [1, 3, 5]
        path = folder / f"history{suffix}"
        save_history(History((Signature("add", 1, "word"),), records), path)
        return path

    return make


def scraped_metrics() -> str:
    labels = 'namespace="public/default",topic="persistent://public/default/orders"'
    return (
        "# TYPE pulsar_in_messages_total counter\n"
        f"pulsar_in_messages_total{{{labels}}} 1000\n"
        "# TYPE pulsar_subscription_back_log gauge\n"
        f'pulsar_subscription_back_log{{{labels},subscription="sub"}} 5000\n'
        f'pulsar_subscription_delayed{{{labels},subscription="sub"}} 7\n'
    )


def jepsen() -> str:
    return "".join(
        f"{{:process {number} :type :{kind} :f :read :value {value}}}\n"
        for number in range(3)
        for kind, value in (("invoke", "nil"), ("ok", number))
    )


# Tables, settings, states -------------------------------------------------------------------------


def kill_table(folder: Path) -> Path:
    cell = results.Cell(
        "M01", "c11", "0123456789ab", "", "", "", 20, 3, 4000, "12", "0.500", "I1 (3)", "2 threads"
    )
    path = folder / "kill_table.csv"
    names = ",".join(asdict(cell))
    path.write_text(names + "\n" + ",".join(f"{value}" for value in asdict(cell).values()) + "\n")
    return path


def beside_a_run(folder: Path) -> Path:
    run = run_of(run_file("run.json")(folder))
    return kill_table(run)


def fault_table(folder: Path) -> Path:
    path = folder / "faults.csv"
    faults.write(
        path,
        [
            faults.FaultResult(
                "entry", "f", "store()", "relaxed", "012345", "", "", "", 10, "entry", "I1"
            )
        ],
    )
    return path


def cluster_state(folder: Path) -> Path:
    path = folder / "cluster.json"
    process = {
        "name": "master",
        "pid": 2**22 + 1,
        "created": 1.0,
    }  # no such process: above the kernel's most
    state = {"url": "spark://127.0.0.1:7077", "pages": "http://127.0.0.1:1", "workers": 1}
    path.write_text(json.dumps({**state, "processes": [process]}))
    return path


def read_cluster(path: Path) -> None:
    cluster.processes(cluster.read(path.parent))
    cluster.running(path.parent)


def ledger_file(folder: Path) -> Path:
    path = folder / "ledgers.db"
    storage = DiskStorage(path, durable=False)
    ledger = storage.create_ledger("name")
    for entry in range(3):
        storage.append(ledger, entry, b"data" * 100).result()
    storage.set_property("name", "key", "value")
    storage.close()
    return path


def read_ledgers(path: Path) -> None:
    storage = DiskStorage(path, durable=False)
    try:
        for ledger in storage.ledgers("name"):
            if ledger.entries:
                storage.read(ledger.ledger_id, 0, ledger.entries - 1).result()
        storage.properties("name")
    finally:
        storage.close()


def cursor(folder: Path) -> Path:
    acks = AckState(Position(1, 0))
    acks.acknowledge(Position(1, 3))
    data, _ = encode(
        acks, revision=3, properties={"a": "b"}, sequence_ids={"producer": 7}, max_bytes=None
    )
    path = folder / "cursor"
    path.write_bytes(data)
    return path


def read_cursor(path: Path) -> None:
    stored = decode(path.read_bytes())
    AckState.restore(stored.mark_delete_position, stored.data, stored.ranges, stored.batches)


def cursor_body(folder: Path) -> Path:
    """The bytes under the checksum, so that damage gets past it."""
    path = cursor(folder)
    path.write_bytes(path.read_bytes()[CHECKED.size :])
    return path


def read_body(path: Path) -> None:
    body = path.read_bytes()
    stored = decode(CHECKED.pack(MAGIC, VERSION, zlib.crc32(body)) + body)
    AckState.restore(stored.mark_delete_position, stored.data, stored.ranges, stored.batches)


PARSERS: dict[str, Parser] = {
    "replay record": Parser(
        text_file("record.json", lambda: violation("I1", "the count is 3")["replay"]),
        read_record,
        "version",
    ),
    "build call": Parser(
        text_file("build.json", lambda: BuildCall("ring.pyx", macros={"A": "1"}).to_json()),
        read_call,
        "version",
    ),
    "failure": Parser(
        text_file("failure.json", lambda: failure_of("race_met").to_json()), read_failure, "version"
    ),
    "short failure": Parser(
        text_file("failure.txt", lambda: failure_of("use_after_free").short()), read_failure
    ),
    "hints": Parser(hints_file, read_file, "version"),
    "run.json, reported": Parser(run_file("run.json"), reported, "version"),
    "run.json, resumed": Parser(run_file("run.json"), resumed, "version"),
    "kill-table.json of a run": Parser(run_file(KILL_TABLE), reported, "version"),
    "trials, reported": Parser(run_file("trials/wave-00000.parquet"), reported, binary=True),
    "trials, resumed": Parser(run_file("trials/wave-00000.parquet"), resumed, binary=True),
    "trials, collected": Parser(run_file("trials/wave-00000.parquet"), collected, binary=True),
    "chunks, resumed": Parser(run_file("chunks/wave-00000.parquet"), resumed, binary=True),
    "trials of a search, resumed": Parser(searched_run, resumed, binary=True),
    "trials of a search, reported": Parser(searched_run, reported, binary=True),
    "round, reported": Parser(run_in_rounds, reported, "version"),
    "smaller failure, reported": Parser(smaller_failure, reported, "version"),
    "violations, reported": Parser(
        run_file("violations/wave-00000.parquet"), reported, binary=True
    ),
    "violations, resumed": Parser(run_file("violations/wave-00000.parquet"), resumed, binary=True),
    "history.jsonl": Parser(history_file(".jsonl"), load_history),
    "history.parquet": Parser(history_file(".parquet"), load_history, binary=True),
    "history.arrow": Parser(history_file(".arrow"), load_history, binary=True),
    "history.edn": Parser(text_file("history.edn", jepsen), load_history),
    "broker.conf": Parser(
        text_file("broker.conf", lambda: read_mapping({}).to_broker_conf()),
        read_broker_conf,
        lines=True,
    ),
    "known.toml": Parser(
        text_file("known.toml", known_text),
        lambda path: read_baseline([path], date(2026, 3, 1)),
    ),
    "workload": Parser(
        text_file("workload.toml", lambda: workload_text("fan_out")),
        lambda path: load_workload(str(path)),
    ),
    "metrics of a broker": Parser(
        text_file("metrics.prom", scraped_metrics),
        lambda path: scraped_workload([path, path], seconds=60),
    ),
    "kill_table.csv": Parser(kill_table, results.Results),
    "kill_table.csv, reported": Parser(kill_table, read_kill_cells),
    "kill_table.csv beside a run": Parser(beside_a_run, reported),
    "faults.csv": Parser(fault_table, faults.read),
    "cluster.json": Parser(cluster_state, read_cluster),
    "ledgers of a storage": Parser(ledger_file, read_ledgers, binary=True, writes=True),
    "metadata of a cursor": Parser(cursor, read_cursor, binary=True, file=False),
    "metadata of a cursor with a checksum that is right": Parser(
        cursor_body, read_body, binary=True, file=False
    ),
}
