"""The installed wheel is the one of the build tests."""

from __future__ import annotations

from tests.builds.conftest import built as built
