"""Files that grow, are cut or replaced, and the command that follows them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pulsar_ml.cli import main
from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.harness.linearize.following.growing import GrowingFile
from tests import ROOT
from tests.linearize.following.test_follow import STALE, in_lines


def test_what_is_appended_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"one\n")
    now, slept = [0.0], list[float]()
    file = GrowingFile(path, 5, clock=lambda: now[0], sleep=slept.append)
    assert (file.read(), file.read()) == (b"one\n", b"")
    now[0] = 4
    assert file.wait() and slept
    with path.open("ab") as end:
        end.write(b"two")
    assert file.read() == b"two"
    now[0] = 8.9
    assert file.wait()
    now[0] = 9
    assert not file.wait()
    file.close()


def test_a_file_that_is_cut_replaced_or_removed(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_bytes(b"12345\n")
    file = GrowingFile(path)
    file.read()
    os.truncate(path, 2)
    with pytest.raises(BadRecordError, match="h.jsonl was truncated to 2 bytes after 6 were read"):
        file.read()
    path.rename(tmp_path / "h.jsonl.1")
    with pytest.raises(BadRecordError, match="h.jsonl was removed after 6 bytes"):
        file.read()
    path.write_bytes(b"12345\n67")
    with pytest.raises(BadRecordError, match="h.jsonl was replaced by another file after 6 bytes"):
        file.read()
    file.close()
    with pytest.raises(UsageError, match="cannot be followed: No such file"):
        GrowingFile(tmp_path / "none")
    with pytest.raises(UsageError, match="cannot be followed: it is no plain file"):
        GrowingFile(tmp_path)


def run(path: Path, *arguments: str) -> tuple[int, str]:
    options = ["linearize", str(path), "--model", "register", "--follow", "--until-idle", "0"]
    done = CliRunner().invoke(main, [*options, *arguments])
    return done.exit_code, done.output


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(in_lines(*STALE))
    code, output = run(path)
    assert code == 1 and "illegal: not linearizable, whatever follows (6 events" in output
    code, output = run(path, "--json")
    found = json.loads(output[output.index("{") :])
    assert (code, found["blocked"]) == (1, "line 3")
    assert found["core"] == {"line 1": "write('a')", "line 3": "read()"}
    path.write_text(in_lines(*STALE[:4]))
    code, output = run(path)
    assert code == 0 and "legal so far: linearizable (4 events, 3 operations)" in output
    path.write_text("")
    code, output = run(path)
    assert code == 0 and "legal so far: linearizable (0 events" in output
    assert output.count("following ") == 1
    for arguments in (["--criterion", "sequential"], ["--html", str(tmp_path / "page.html")]):
        code, output = run(path, *arguments)
        assert code == 2 and "needs the whole history; leave it or --follow out" in output
    done = CliRunner().invoke(
        main, ["linearize", str(path), "--model", "register", "--until-idle", "1"]
    )
    assert done.exit_code == 2 and "--until-idle ends --follow" in done.output


def test_an_interruption_ends_with_the_answer_so_far(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(in_lines(*STALE[:2]))
    arguments = ["linearize", str(path), "--model", "register", "--follow"]
    with subprocess.Popen(
        [sys.executable, "-m", "pulsar_ml", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        assert process.stderr.readline().startswith("following ")
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    assert (process.returncode, output[:12]) == (0, "legal so far")


def test_an_interruption_within_an_import_ends_with_the_answer_so_far(tmp_path: Path) -> None:
    path = tmp_path / "h.jsonl"
    path.write_text(in_lines(*STALE[:2]))
    (tmp_path / "late.py").write_text(
        "import os, signal, sys\n"
        "if 'ended' not in vars(signal):\n"
        "    signal.ended = True\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    (tmp_path / "model.py").write_text(
        "from pulsar_ml.harness.models import Register\n"
        "class Late(Register):\n"
        "    def step(self, state, call):\n"
        "        import late\n"
        "        return super().step(state, call)\n"
    )
    arguments = ["linearize", str(path), "--model", f"{tmp_path}/model.py:Late", "--follow"]
    done = subprocess.run(
        [sys.executable, "-m", "pulsar_ml", *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout[:12]) == (0, "legal so far")
