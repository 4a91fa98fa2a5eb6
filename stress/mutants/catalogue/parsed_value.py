"""Mistakes with the parsed values of entries."""

from __future__ import annotations

from stress.mutants.catalogue.mutant import Mutant

FILE = "structures/parsed_value.pxd"

MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        id="MV-shared",
        title="a copy takes no reference of the parsed value that it shares",
        origin="port",
        file=FILE,
        old="""
if share & PAYLOAD_IS_PARSED:
    metadata_retain(share_metadata(share))
else:
    payload_retain(<Payload*>share)
""",
        new="""
if not share & PAYLOAD_IS_PARSED:
    payload_retain(<Payload*>share)
""",
        suite="entry",
        breaks="EN-7",
    ),
    Mutant(
        id="MV-twice",
        title="a parsed value replaces the one that another thread attached",
        origin="port",
        file="structures/entry.pxd",
        old="""
if i64_cas_strong_acq_rel(&entry.payload, &seen, <int64_t>metadata | PAYLOAD_IS_PARSED):
    return PML_OK
release(metadata)
return PML_EXISTS
""",
        new="""
i64_store_release(&entry.payload, <int64_t>metadata | PAYLOAD_IS_PARSED)
return PML_OK
""",
        suite="entry",
        breaks="EN-7",
        cimports="from pulsar_ml.sync.atomics cimport i64_store_release",
        calls=(
            (("new", 8, 0, 0), ("retain", 0), ("pass_on", 0), ("parse", 0)),
            (("pass_on", 0), ("parse", 0)),
        ),
    ),
    Mutant(
        id="MV-lost",
        title="the last copy of an entry gives the payload back and keeps the parsed value",
        origin="port",
        file=FILE,
        old="share = metadata_release(share_metadata(share))",
        new="share = share_metadata(share).payload",
        suite="entry",
        breaks="EN-7",
    ),
)
