"""`python -m shardctl`."""

try:
    from shardctl.cli.main import main
except KeyboardInterrupt:  # before `main` notes interrupts itself
    raise SystemExit(130) from None

main()
