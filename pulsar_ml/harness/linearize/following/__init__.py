"""Following a history in a file that grows: :class:`Follower` and what it reads."""

from __future__ import annotations
