"""The command line as a fixture of all verbs."""

from tests.cli.conftest import shardctl

__all__ = ["shardctl"]
