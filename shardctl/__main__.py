"""`python -m shardctl`."""

from shardctl.cli.main import main

main()
