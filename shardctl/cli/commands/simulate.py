# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl simulate`: the order in which examples are read."""

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from shardctl.cli.options.dataset import chosen_dataset
from shardctl.cli.options.numbers import whole_number
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions, SpecArgument
from shardctl.cli.output import Chunk, check_format, screen, warn, write
from shardctl.errors import UsageError

_IN_PIECES = ("csv", "ids", "tfds-ids", "jsonl", "npy")  # 8 bytes or a line an example
_PATIENCE = 0.5  # seconds after which a file gets a progress bar


def simulate(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
    skip: Annotated[
        Any,
        typer.Option(
            "--skip",
            metavar="N",
            parser=whole_number("--skip", minimum=0),
            help="Begin after N examples of the whole order.",
        ),
    ] = 0,
    take: Annotated[
        Any,
        typer.Option(
            "--take",
            metavar="N",
            parser=whole_number("--take", minimum=-1),
            help="Show N examples, -1 for all.",
        ),
    ] = 20,
) -> None:
    """Print the order in which examples are read, exactly, without reading them.

    Formats: table, json, yaml, csv, ids, tfds-ids, jsonl, npy.

    Example: shardctl simulate --cycle 3 --block 2 -d imagenet2012
    """
    from shardctl.planning.simulate import simulate as simulate_order
    from shardctl.rendering.simulate import FORMATS, array_num_bytes, simulate_table

    check_format(out.format, "table", *FORMATS)
    to_file = out.output not in (None, "-")
    if out.format == "npy" and not to_file and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("--format npy writes bytes: name a file with --output FILE")
    settings = reading.settings()
    simulation = simulate_order(
        chosen_dataset(source),
        spec,
        settings,
        skip=skip,
        take=None if take == -1 else take,
    )
    warn(simulation.warnings)
    chunks: Iterator[Chunk]
    if out.format == "table":
        chunks = simulate_table(simulation, screen(out.output))
    else:
        chunks = iter(FORMATS[out.format](simulation))
    if to_file and out.format in _IN_PIECES:
        chunks = _watched(chunks, simulation.take)
    num_bytes = array_num_bytes(simulation) if out.format == "npy" else None
    write(chunks, out.output, num_bytes=num_bytes)


def _watched(chunks: Iterator[Chunk], count: int) -> Iterator[Chunk]:
    """Yield the chunks, with a bar on stderr that shows how far a file is that takes a while."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield from chunks
        return
    start, done = time.monotonic(), 0
    for chunk in chunks:
        yield chunk
        done += _num_examples(chunk)
        if time.monotonic() - start > _PATIENCE:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("examples", total=count, completed=done)
        for chunk in chunks:
            yield chunk
            progress.advance(task, _num_examples(chunk))


def _num_examples(chunk: Chunk) -> int:
    """Return about how many examples are in a chunk: 8 bytes or a line each."""
    return chunk.count("\n") if isinstance(chunk, str) else len(chunk) // 8
