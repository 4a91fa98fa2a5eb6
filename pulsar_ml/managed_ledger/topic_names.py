"""Names of topics: as clients write them, and as managed ledgers are called."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

DOMAINS = ("persistent", "non-persistent")
PARTITION = re.compile(r"-partition-(\d+)$")


class TopicName(NamedTuple):
    """The parts of a topic's name; all but ``topic`` are empty for a name of another form.

    Attributes:
        domain: "persistent" or "non-persistent".
        tenant: the tenant.
        namespace: the tenant and namespace with a slash, the cluster between them in old names.
        topic: the whole name as clients write it, ``persistent://tenant/namespace/topic``.
        partition: the index of a partition, or None.
    """

    domain: str
    tenant: str
    namespace: str
    topic: str
    partition: int | None

    @property
    def base(self) -> str:
        """The topic without the suffix of its partition."""
        return self.topic if self.partition is None else PARTITION.sub("", self.topic)


def topic_name(name: str) -> TopicName:
    """Parses a topic's name or that of its managed ledger, ``tenant/namespace/persistent/topic``.

    The last part of a managed ledger's name is percent-encoded. A name of another form is the topic
    itself, without a namespace.
    """
    domain, separator, rest = name.partition("://")
    if separator and domain in DOMAINS:
        namespace, local = split_namespace(rest.split("/"))
    else:
        parts = name.split("/")
        domain, namespace, local = "", "", ""
        for at in (2, 3):
            if len(parts) == at + 2 and parts[at] in DOMAINS:
                domain, namespace, local = parts[at], "/".join(parts[:at]), unquote(parts[-1])
    if not namespace or not local:
        return TopicName("", "", "", name, None)
    topic = f"{domain}://{namespace}/{local}"
    partition = PARTITION.search(local)
    return TopicName(
        domain,
        namespace.partition("/")[0],
        namespace,
        topic,
        int(partition[1]) if partition else None,
    )


def split_namespace(parts: list[str]) -> tuple[str, str]:
    """``tenant/namespace`` or ``tenant/cluster/namespace``, and the rest of the name."""
    size = 3 if len(parts) == 4 else 2
    return "/".join(parts[:size]), "/".join(parts[size:])
