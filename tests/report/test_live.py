"""``report --live`` serves one page of a growing run, to this machine, and nothing else."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pulsar_ml.campaign.store.schema import ROW, split
from pulsar_ml.errors import BadRecordError
from pulsar_ml.report.live import HOST, LivePage, live_server
from tests import ROOT
from tests.report.kit import row, violation, write_run
from tests.report.reading import report


@dataclass
class Served:
    """A page that is served, and how often it was made."""

    run: Path
    address: str
    versions: list[str]
    grows: bool = True
    readable: bool = True

    def make(self) -> tuple[str, bool]:
        if not self.readable:
            raise BadRecordError("half of a file")
        self.versions.append("")
        return f"page {len(self.versions)}", self.grows

    def get(
        self, path: str | None = None, host: str | None = None, method: str = "GET"
    ) -> tuple[http.client.HTTPResponse, str]:
        parts = urlsplit(self.address)
        connection = http.client.HTTPConnection(HOST, parts.port or 0)
        headers = {} if host is None else {"Host": host}
        connection.request(method, parts.path if path is None else path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    one = Served(write_run(tmp_path / "run", [row(0)], status="running"), "", [])
    server, one.address = live_server(LivePage(one.run, one.make))
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield one
    server.shutdown()
    thread.join()
    server.server_close()


def add_wave(run: Path) -> None:
    rows = [row(7, found=[violation("I7", "seven")])]
    trials, violations = split(pa.Table.from_pylist(rows, schema=ROW))
    for name, table in (("violations", violations), ("trials", trials)):
        pq.write_table(table, run / name / "wave-00001.parquet")


def test_the_page_is_made_again_only_when_the_run_has_grown(served: Served) -> None:
    answer, text = served.get()
    assert (answer.status, text) == (200, "page 1")
    assert answer.headers["Refresh"] == "10" and answer.headers["Cache-Control"] == "no-store"
    assert served.get()[1] == "page 1"
    add_wave(served.run)
    assert served.get()[1] == "page 2"
    served.grows = False
    (served.run / "run.json").write_text((served.run / "run.json").read_text() + " ")
    answer, text = served.get()
    assert text == "page 3" and "Refresh" not in answer.headers, "an ended run stands still"
    served.readable = False
    (served.run / "run.json").write_text((served.run / "run.json").read_text() + " ")
    assert served.get()[1] == "page 3", "a file that is being written costs nothing"


@pytest.mark.parametrize("path", ["/", "/run.json", "/../run.json", "/etc/passwd", "*", "//"])
def test_no_other_path_answers(served: Served, path: str) -> None:
    answer, text = served.get(path)
    assert answer.status == 404 and "page" not in text
    below, text = served.get(urlsplit(served.address).path + "run.json")
    assert below.status == 404 and "page" not in text
    assert served.versions == []


def test_only_readers_of_this_machine_by_its_own_name(served: Served) -> None:
    port = urlsplit(served.address).port
    assert served.get(host=f"localhost:{port}")[0].status == 200
    assert served.get(host=f"other.example:{port}")[0].status == 404
    assert served.get(method="POST")[0].status == 501
    answer, text = served.get(method="HEAD")
    assert answer.status == 200 and text == ""
    other, address = live_server(LivePage(served.run, served.make))
    other.server_close()
    assert urlsplit(address).path != urlsplit(served.address).path, "the token is drawn anew"
    assert len(urlsplit(address).path) > 30


def test_ctrl_c_ends_it_cleanly(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [row(0, found=[violation("I1", "x")])], status="running")
    process = subprocess.Popen(
        [sys.executable, "-m", "pulsar_ml", "report", str(run), "--live"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    assert "this machine alone" in process.stdout.readline()
    _, text = Served(run, address, []).get()
    assert "1 violation with 1 signature" in text and "The run has not finished" in text
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert not (run / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--live", "--out", "x"), "neither --out nor --format"),
        (("--live", "--format", "json"), "neither --out nor --format"),
        (("--port", "8000"), "--port is for --live"),
    ],
)
def test_options_without_effect_are_refused(
    tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = report(write_run(tmp_path / "run", [row(0)]), *options)
    assert done.exit_code == 2 and words in done.stderr


def test_a_run_that_cannot_be_read_is_refused_and_a_port_in_use_is_named(served: Served) -> None:
    assert report(served.run / "none", "--live").exit_code == 2
    port = str(urlsplit(served.address).port)
    done = report(served.run, "--live", "--port", port)
    assert done.exit_code == 2 and f"port {port} cannot be used" in done.stderr
