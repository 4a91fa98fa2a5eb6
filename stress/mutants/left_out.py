"""Known bugs of the original, and mistakes of ports, that are no mutants here, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

LEFT_OUT: Mapping[str, str] = {
    "H04 size measured after publication": "The length is an argument of put; nothing is measured there.",
    "H09 identity instead of equality": "Keys are values; there is no identity to compare.",
    "H17 write lock on the read path": "Nothing is wrong but the speed; benchmarks measure that.",
    "H25 permits taken twice for split reads": "The reads take none; F03 is the same count in the limiter.",
    "H26 spinning limiter": "Its harm is load, which no check of answers sees.",
    "H28 release only if inserted": "The caller's mistake, above the native code.",
    "H35 stale cached position": "An entry has no position besides its ids.",
    "H39 no grace period": "C07 is its native part.",
    "L09 bytes lost after an over-release": "It takes a caller that released too often, which no suite is.",
    "L11 iteration leaks empty wrappers": "An iteration owns no wrapper here.",
    "L14 version word without fences": "M01 and M02.",
    "M05 16-bit version": "It takes 32,768 write sections during one read; the width is fixed at 64 bits.",
    "M08 memory given back": "There is no switch in one place: type-stability is what the pools are.",
    "M12 retain by addition": "H01.",
    "M18 requeue before the poll": "Not yet: the poll takes the head in either order, inside one monitor.",
    "M38 removed bytes in 32 bits": "Not yet: sizes of the suites stay small.",
    "H07, L10, L12, M39, M40, M42": (
        "Written and not found by two seeds of real threads: the suites of the cache, the manager "
        "and the passes "
        "do not show them yet."
    ),
    "M45-M49, M51, M53, M56, M63": "Not yet written.",
}
