"""The ``config`` command, run like a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pulsar_ml.cli import COMMANDS, main
from pulsar_ml.config import SETTINGS, CacheConfig, parse_broker_conf

EXCERPT = Path(__file__).with_name("broker.conf")


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments])


def test_explain_prints_every_setting_with_value_and_place() -> None:
    result = call("--explain", "--broker-conf", str(EXCERPT))
    assert result.exit_code == 0
    flat = "".join(result.output.split())
    for setting in SETTINGS:
        assert setting.key in flat.replace("│", "")
    assert "0.85" in flat
    assert f"{EXCERPT}:8:clusterName" in flat
    assert "8keysarenosettingsofthecache" in flat
    assert "Withouteffect:cacheEvictionByExpectedReadCountisoff." in flat.replace("│", "")


SIZE = f"{CacheConfig().cache_size_bytes() // 2**20} MB (derived)"
EXTENSIONS = "managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes"
GRACE = "managedLedgerContinueCachingAddedEntriesAfterLastActiveCursorLeavesMillis"
LONGEST = "managedLedgerCacheEvictionTimeThresholdMillisMax"
DERIVED = (
    ("managedLedgerCacheSizeMB", "", SIZE),
    ("managedLedgerCacheSizeMB", "managedLedgerCacheSizeMB=7", "7 MB"),
    (GRACE, "", "2000 ms (derived)"),
    (GRACE, "managedLedgerCacheEvictionTimeThresholdMillis=300", "600 ms (derived)"),
    (GRACE, "cacheEvictionByExpectedReadCount=false", "0 ms (derived)"),
    (GRACE, f"{GRACE}=5", "5 ms"),
    ("managedLedgerMaxAckStateInBytesToPersist", "", "5242880 bytes (derived)"),
    (
        "managedLedgerMaxAckStateInBytesToPersist",
        "managedLedgerMaxUnackedRangesToPersist=7",
        "no limit (derived)",
    ),
    ("managedLedgerCacheEvictionIntervalMs", "", "10 ms"),
    (
        "managedLedgerCacheEvictionIntervalMs",
        "managedLedgerCacheEvictionFrequency=50",
        "20 ms (derived)",
    ),
    ("delayedDeliveryPruneMinIntervalMillis", "", "50 ms (derived)"),
    (
        "delayedDeliveryPruneMinIntervalMillis",
        "delayedDeliveryTickTimeMillis=8",
        "8 ms (derived)",
    ),
    (
        "cacheEvictionByMarkDeletedPosition",
        "cacheEvictionByMarkDeletedPosition=true",
        "false (derived)",
    ),
    (EXTENSIONS, "", "5 times"),
    (EXTENSIONS, "cacheEvictionByExpectedReadCount=false", "0 times (derived)"),
    (LONGEST, "", "5000 ms"),
    (LONGEST, "managedLedgerCacheEvictionTimeThresholdMillis=8000", "8000 ms (derived)"),
)


@pytest.mark.parametrize("key, line, shown", DERIVED)
def test_explain_prints_the_value_that_holds(
    key: str, line: str, shown: str, tmp_path: Path
) -> None:
    file = tmp_path / "broker.conf"
    file.write_text(f"{line}\n")
    output = call("--explain", "--key", key, "--broker-conf", str(file)).output
    assert f"{key}\n  = {shown} (default " in output


def test_every_derived_default_is_explained_by_a_value() -> None:
    unset = {key for key, line, _ in DERIVED if not line}
    assert {setting.key for setting in SETTINGS if setting.derived} <= unset
    assert "none" not in call("--explain").output.replace("│", " ").split()


def test_keys_are_chosen_by_a_part_of_their_name() -> None:
    result = call("--explain", "--key", "watermark")
    assert "managedLedgerCacheEvictionWatermark" in result.output
    assert "managedLedgerCursorBackloggedThreshold" not in result.output
    wrong = call("--explain", "--key", "nosuchkey")
    assert wrong.exit_code == 2
    assert "'nosuchkey'" in wrong.output


def test_json_has_the_same() -> None:
    data = json.loads(call("--json", "--broker-conf", str(EXCERPT)).output)
    rows = {row["key"]: row for row in data["settings"]}
    assert len(rows) == len(SETTINGS)
    assert rows["managedLedgerCacheEvictionWatermark"]["value"] == 0.85
    assert rows["managedLedgerCacheEvictionWatermark"]["from"].endswith("broker.conf:21")
    assert [item["key"] for item in data["unknown"]][1] == "clusterName"


def test_without_options_it_prints_a_broker_conf() -> None:
    reading = parse_broker_conf(call().output)
    assert (reading.config, reading.unknown) == (CacheConfig(), {})


def test_a_bad_value_ends_with_2_and_its_place(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("clusterName=x\nmanagedLedgerCacheSizeMB=much\n")
    result = call("--explain", "--broker-conf", str(file))
    assert result.exit_code == 2
    assert (
        f"{file}:2: managedLedgerCacheSizeMB cannot be 'much'; it takes a whole number"
        in result.output
    )
    assert call("--broker-conf", str(tmp_path / "none")).exit_code == 2


def test_every_command_exists_and_only_the_one_asked_for_is_loaded() -> None:
    for name in COMMANDS:
        assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2
    code = (
        "import sys, pulsar_ml.cli as c; "
        "c.main(['--help'], standalone_mode=False); print([*sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert not any(
        f"'{module}'" in loaded for module in ("pulsar_ml.cli.config", "rich", "psutil", "numpy")
    )
