"""The weakly consistent operations of range caches: the meaning of each answer."""

from __future__ import annotations

from collections.abc import Mapping

APART = frozenset({"open_close", "release_too_often"})  # of caches that nobody else sees

PROMISES: Mapping[str, str] = {
    "put": "OK: the position was free at one moment of the call. EXISTS: it was taken at one "
    "moment, perhaps by an entry that was removed since, but not by one that the caller "
    "knows to be removed.",
    "put_late": "As put.",
    "put_alone": "As put.",
    "put_foreign": "Nothing is put.",
    "get": "A hit shows an incarnation that was put under the key: not older than the last one "
    "that the caller put or saw there, and none that the caller removed or missed. A miss "
    "of the incarnation that the caller put or saw last needs a removal that covers the "
    "key and counts it in its answer. Expected reads are at most those of one put of the "
    "key and those added since, less one for each copy.",
    "hold": "As get.",
    "dispatch": "As get. Other calls may see the copy released before this call ends; the "
    "last count is of the end of the call.",
    "release": "The incarnation is the one that the thread kept at the place; the expected "
    "reads are of one moment, within the bounds of get.",
    "drop": "As release.",
    "expect": "As release. Other calls may see the count raised before this call ends.",
    "exists": "As get, without the incarnation.",
    "read_range": "Each key by itself, as exists. The range has every entry that the caller "
    "put or saw and that was there during the whole call.",
    "visit": "As read_range. The answer counts the keys, up to the clear if there is one.",
    "remove_range": "Each entry by itself: the entries that the caller knew of when the call "
    "began are removed when it ends. The entries and bytes that removals answer add up to "
    "those that are gone.",
    "clear": "As remove_range, for all keys.",
    "size": "At least the bytes of the entries that the caller put or saw last and that "
    "nothing can have removed; at most the bytes of all entries put, less those that the "
    "caller removed.",
    "sweep": "No entry is removed. The wrappers dropped were empty, and are at most as many "
    "as the entries that are gone.",
    "open_close": "The caches are the call's own. No other call sees them.",
    "release_too_often": "As open_close.",
    "describe": "Of the entry, as exists; its expected reads are within the bounds of get. A miss says "
    "nothing: each key of the range may be empty at a moment of its own.",
    "over_release": "As get. From then on any answer about the key is legal.",
}
