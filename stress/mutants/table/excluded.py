"""Known bugs of the original, and mistakes of ports, that have no mutant here, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

EXCLUDED: Mapping[str, str] = {
    "H04 size measured after publication": "The length is an argument of put; nothing is measured.",
    "H09 identity instead of equality": "Keys are values; there is no identity to compare.",
    "H17 write lock on the read path": "It costs speed alone; benchmarks measure that.",
    "H25 permits taken twice for split reads": (
        "Reads take no permits; RD3 is the same counting mistake in the limiter."
    ),
    "H26 spinning limiter": "Its harm is load, which no check of answers sees.",
    "H28 release only if inserted": "The caller's mistake, above the native code.",
    "H35 stale cached position": "An entry has no position besides its ids.",
    "H39 no grace period": "C07 is its native part.",
    "L11 iteration leaks empty wrappers": "An iteration owns no wrapper here.",
    "L14 version word without fences": "M01 and M02.",
    "M08 memory given back": (
        "There is no switch in one place: type-stability is what the pools are."
    ),
    "M12 retain by addition": "H01.",
}
