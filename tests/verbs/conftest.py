"""Commands of verbs run in this process, as those of the command line do."""

from tests.cli.conftest import shardctl  # noqa: F401  # a fixture
