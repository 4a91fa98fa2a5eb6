"""Writes JUnit XML, the format of results that build servers read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

# Characters that XML cannot represent, not even escaped.
NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def fit(text: str) -> str:
    """Replaces characters that XML cannot represent."""
    return NOT_XML.sub("\ufffd", text)


def as_text(root: ElementTree.Element) -> str:
    """The document of ``root``, once every suite and the root have counts of their cases."""
    for element in (root, *root.findall("testsuite")):
        element.set("tests", str(len(list(element.iter("testcase")))))
        element.set("failures", str(len(list(element.iter("failure")))))
        element.set("skipped", str(len(list(element.iter("skipped")))))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
