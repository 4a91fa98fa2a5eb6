"""The installed wheel is the one of the build tests."""

from tests.build.conftest import built as built
