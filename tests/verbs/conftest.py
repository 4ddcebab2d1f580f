"""Commands run in this process, as in `tests/cli`."""

from tests.cli.conftest import shardctl as shardctl
