"""``hunt`` takes all from a record; a build that is missing, and cannot be made, is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pulsar_ml.errors import BadRecordError, UsageError
from pulsar_ml.exit_codes import FAILED, USAGE
from pulsar_ml.harness.building import twin
from pulsar_ml.harness.building.build_call import CALL, BuildCall, read_call
from pulsar_ml.harness.building.twin import checked_twin
from tests.commands import call
from tests.report.kit import violation


def record_about(module: Path, folder: Path) -> str:
    content = json.loads(violation("I1", "the count is 3")["replay"])
    path = folder / "record.json"
    path.write_text(json.dumps({**content, "module": str(module), "suite": "refcount"}))
    return str(path)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A plain module with the call that built it; nothing is compiled."""
    home = tmp_path / "build" / "ring-0123"
    home.mkdir(parents=True)
    source = tmp_path / "ring.pyx"
    source.write_text("x = 1\n")
    call_of_build = BuildCall(str(source), (str(tmp_path),), {"A": "1"}, ("-O2",), "c++", "relaxed")
    (home / CALL).write_text(call_of_build.to_json())
    return home / "ring.so"


def test_the_twin_is_built_as_the_module_was(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[Path, dict[str, object]]] = []

    def build_extension(source: Path, **options: object) -> Path:
        calls.append((source, options))
        return tmp_path / "checked.so"

    monkeypatch.setattr(twin, "build_extension", build_extension)
    assert checked_twin(str(module)) == tmp_path / "checked.so"
    ((source, options),) = calls
    assert source == tmp_path / "ring.pyx" and options["checked"]
    assert options["into"] == tmp_path / "build" and options["name"] == "ring"
    assert (options["macros"], options["flags"]) == ({"A": "1"}, ("-O2",))
    assert (options["language"], options["volatile"]) == ("c++", "relaxed")


def test_a_module_is_not_built_without_trust(module: Path, tmp_path: Path) -> None:
    found = call("hunt", record_about(module, tmp_path))
    assert found.code == USAGE and "if the file is yours, add --trust" in found.err


def test_a_source_that_is_gone_is_named(module: Path, tmp_path: Path) -> None:
    (tmp_path / "ring.pyx").unlink()
    found = call("hunt", record_about(module, tmp_path), "--trust")
    assert found.code == USAGE
    assert (
        f"needs the checked build of {module}, whose source {tmp_path}/ring.pyx is gone"
        in found.err
    )


def test_a_module_of_another_build_is_named(module: Path) -> None:
    module.with_name(CALL).unlink()
    with pytest.raises(UsageError, match="nothing beside that module says how it was built"):
        checked_twin(str(module))


def test_a_damaged_call_is_refused(module: Path, tmp_path: Path) -> None:
    module.with_name(CALL).write_text("{}")
    with pytest.raises(BadRecordError):
        read_call(module.with_name(CALL))
    found = call("hunt", record_about(module, tmp_path), "--trust")
    assert found.code in (USAGE, FAILED) and "build call" in found.err
