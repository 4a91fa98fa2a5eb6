"""The installed wheel is the one of the build tests."""

from __future__ import annotations

from tests.build.conftest import built as built
