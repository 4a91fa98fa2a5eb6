"""Settings from mappings and files: values, origins, unknown keys, and errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulsar_ml.config import (
    BY_ANY_KEY,
    SETTINGS,
    CacheConfig,
    Reading,
    Setting,
    parse_broker_conf,
    read_broker_conf,
    read_mapping,
    to_broker_conf,
)
from pulsar_ml.errors import ConfigError, PulsarMlError

EXCERPT = Path(__file__).with_name("broker.conf")


def values_of(setting: Setting) -> st.SearchStrategy[object]:
    if setting.choices:
        values: st.SearchStrategy[object] = st.sampled_from(setting.choices)
    elif setting.kind is bool:
        values = st.booleans()
    elif setting.kind is int:
        values = st.integers(int(setting.low or 0), int(setting.high or 0))
    elif setting.kind is float:
        values = st.floats(setting.low, setting.high)
    else:
        values = st.text(
            st.characters(codec="ascii", min_codepoint=33, max_codepoint=126), min_size=1
        )
    return values | st.none() if setting.derived else values


@st.composite
def configs(draw: st.DrawFn) -> CacheConfig:
    some = draw(st.lists(st.sampled_from(SETTINGS), unique=True, max_size=12))
    changed = {setting.name: draw(values_of(setting)) for setting in some}
    sizes = sorted(draw(st.lists(st.integers(16, 2**30), min_size=3, max_size=3)))
    for name, size in zip(("minimum", "initial", "maximum"), sizes, strict=True):
        changed[f"broker_adaptive_recv_byte_buf_allocator_{name}_size"] = size
    return CacheConfig(**changed)  # type: ignore[arg-type]


def test_a_broker_conf_gives_values_and_their_places() -> None:
    reading = read_broker_conf(EXCERPT)
    config = reading.config
    assert config.cache_size_mb is None
    assert config.cache_copy_entries is True
    assert config.cache_eviction_watermark == 0.85
    assert config.cache_eviction_interval_ms == 25
    assert config.cache_eviction_by_mark_deleted_position is True
    assert config.cache_eviction_by_expected_read_count is False
    assert config.cache_eviction_extend_ttl_of_recently_accessed is False
    assert config.dispatcher_pause_on_ack_state_persistent_enabled is True
    assert config.broker_adaptive_recv_byte_buf_allocator_maximum_size == 65536
    lines = EXCERPT.read_text().splitlines()
    for key, origin in reading.origins.items():
        if origin != "default":
            name, _, line = origin.rpartition(":")
            assert name == str(EXCERPT)
            assert BY_ANY_KEY[lines[int(line) - 1].split("=")[0].strip(" \\")].key == key
    # An empty value means the default.
    assert reading.origins["managedLedgerCacheSizeMB"] == "default"


def test_unknown_keys_are_kept_with_their_places() -> None:
    reading = read_broker_conf(EXCERPT)
    assert reading.unknown == {
        "metadataStoreUrl": "zk:zk-1:2181,zk-2:2181,zk-3:2181/pulsar",
        "clusterName": "eu-west",
        "brokerServicePort": "6650",
        "webServicePort": "8080",
        "advertisedAddress": "",
        "allowAutoTopicCreation": "true",
        "managedLedgerDefaultEnsembleSize": "3",
        "delayedDeliveryEnabled": "true",
    }
    assert reading.unknown_at["clusterName"] == f"{EXCERPT}:8"
    assert parse_broker_conf(reading.to_broker_conf()).unknown == reading.unknown


def test_repeated_keys_and_other_names_are_remarked() -> None:
    repeated, renamed = read_broker_conf(EXCERPT).remarks
    assert repeated.startswith(
        f"{EXCERPT}:33: managedLedgerCacheEvictionIntervalMs was already set on line 22"
    )
    assert renamed.endswith("is read as dispatcherPauseOnAckStatePersistentEnabled")


def test_a_settings_own_key_counts_more_than_its_other_names() -> None:
    for keys in (
        (
            "dispatcherPauseOnAckStatePersistentEnabled",
            "dispatcherPauseOnAckPersistentStateEnabled",
        ),
        (
            "dispatcherPauseOnAckPersistentStateEnabled",
            "dispatcherPauseOnAckStatePersistentEnabled",
        ),
    ):
        text = "".join(f"{key}={str('AckState' in key).lower()}\n" for key in keys)
        assert (
            parse_broker_conf(text).config.dispatcher_pause_on_ack_state_persistent_enabled is True
        )


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("managedLedgerCacheSizeMB=-1", "0 to 2147483647 MB"),
        ("managedLedgerCacheSizeMB=512M", "a whole number"),
        ("managedLedgerCacheSizeMB=1.5", "a whole number"),
        ("managedLedgerCacheSizeMB=1_000", "a whole number"),
        ("managedLedgerCacheEvictionWatermark=90", "1e-06 to 1.0"),
        ("managedLedgerCacheEvictionWatermark=0", "1e-06 to 1.0"),
        ("managedLedgerCacheCopyEntries=yes", "true or false"),
        ("managedLedgerCacheEvictionIntervalMs=0", "1 to"),
        ("managedLedgerCacheEvictionExtendTTLOfEntriesWithRemainingExpectedReadsMaxTimes=70000",
         "0 to 65535"),
        ("managedLedgerMaxAckStateInBytesToPersist=100", "1024 to 5242880"),
        ("brokerAdaptiveRecvByteBufAllocatorInitialSize=512", "MinimumSize, which is 1024"),
        ("brokerAdaptiveRecvByteBufAllocatorMaximumSize=2048", "InitialSize, which is 16384"),
    ],
)  # fmt: skip
def test_a_bad_value_is_an_error_with_its_place_and_what_would_be_right(
    line: str, right: str
) -> None:
    key, _, value = line.partition("=")
    with pytest.raises(ConfigError) as raised:
        parse_broker_conf(f"# first\n\n{line}\n", file="conf/broker.conf")
    message = str(raised.value)
    assert message.startswith(f"conf/broker.conf:3: {key} cannot be ")
    assert value in message
    assert right in message


def test_all_bad_values_are_named_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        parse_broker_conf(
            "managedLedgerCacheSizeMB=x\nclusterName=y\nmanagedLedgerCacheCopyEntries=z\n"
        )
    assert [line.split(" ")[0] for line in str(raised.value).splitlines()] == [
        "broker.conf:1:",
        "broker.conf:3:",
    ]


def test_a_damaged_escape_and_a_file_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"broker.conf:2: .*u12G.* four hexadecimal digits"):
        parse_broker_conf("a=1\nb=\\u12G4\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_broker_conf(tmp_path / "none")
    with pytest.raises(ConfigError, match="^/dev/null: cannot be read: not a regular file$"):
        read_broker_conf("/dev/null")
    (tmp_path / "latin").write_bytes(b"a=\xe9\n")
    with pytest.raises(ConfigError, match="byte 2 is not UTF-8"):
        read_broker_conf(tmp_path / "latin")


def test_a_mapping_takes_texts_and_values() -> None:
    reading = read_mapping(
        {"managedLedgerCacheSizeMB": "64", "cacheEvictionByExpectedReadCount": False, "x": 3}
    )
    assert reading.config == CacheConfig(
        cache_size_mb=64, cache_eviction_by_expected_read_count=False
    )
    assert reading.origins["managedLedgerCacheSizeMB"] == "mapping"
    assert reading.unknown == {"x": "3"}
    with pytest.raises(ConfigError, match="mapping: managedLedgerCacheSizeMB cannot be True"):
        read_mapping({"managedLedgerCacheSizeMB": True})


@settings(max_examples=100, deadline=None, derandomize=True)
@given(config=configs(), comments=st.booleans())
def test_every_configuration_reads_back(config: CacheConfig, comments: bool) -> None:
    reading = parse_broker_conf(to_broker_conf(config, comments=comments))
    assert reading.config == config
    assert (reading.unknown, reading.remarks) == ({}, ())


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    unknown=st.dictionaries(
        st.text(min_size=1).filter(lambda key: key not in BY_ANY_KEY), st.text(), max_size=5
    )
)
def test_unknown_keys_of_any_text_read_back(unknown: dict[str, str]) -> None:
    text = to_broker_conf(CacheConfig(), unknown=unknown)
    assert dict(parse_broker_conf(text).unknown) == unknown


# Pieces of a file: a text, and for a property its key and value.
PIECES = st.one_of(
    st.sampled_from(["\n", "  \t\n", "# x=1\n", "  ! y: 2\n", "# ends with \\\n", "\r\n", "\r"])
    .map(lambda text: (text, None)),
    st.tuples(
        st.sampled_from(["k", "a.b", "clusterName"]), st.integers(0, 99),
        st.sampled_from(["{k}={v}\n", "{k} : {v}\r\n", "  {k}\t{v}\n", "{k}=\\\n   {v}\n",
                         "{k}\\\n\\\n = {v}\r"]),
    ).map(lambda p: (p[2].format(k=p[0], v=p[1]), (p[0], str(p[1])))),
)  # fmt: skip


@settings(max_examples=200, deadline=None, derandomize=True)
@given(pieces=st.lists(PIECES, max_size=12))
def test_the_line_of_a_key_is_where_it_begins(
    pieces: list[tuple[str, tuple[str, str] | None]],
) -> None:
    text = ""
    expected: dict[str, tuple[str, int]] = {}
    for piece, stands_for in pieces:
        if text.endswith("\r") and piece.startswith("\n"):
            piece = " " + piece
        if stands_for:
            # An editor counts lines like str.splitlines.
            expected[stands_for[0]] = (stands_for[1], len((text + "x").splitlines()))
        text += piece
    reading = parse_broker_conf(text, file="f")
    assert {
        key: (value, int(reading.unknown_at[key][2:])) for key, value in reading.unknown.items()
    } == expected


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    text=st.text(st.sampled_from("ab=: \\\n\r\t#!u0F\x00é") | st.characters(), max_size=60),
    key=st.sampled_from(SETTINGS),
    value=st.text(max_size=8),
)
def test_any_text_is_read_or_refused_with_a_place(text: str, key: Setting, value: str) -> None:
    for content in (text, f"{text}\n{key.key}={value}"):
        try:
            reading = parse_broker_conf(content)
        except PulsarMlError as error:
            assert all(line.startswith("broker.conf:") for line in str(error).splitlines())
        else:
            assert isinstance(reading, Reading)
            assert parse_broker_conf(reading.to_broker_conf()).config == reading.config
