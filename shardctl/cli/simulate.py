# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl simulate`: the order in which examples are read."""

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from shardctl.cli import completion
from shardctl.cli.options import DatasetOptions, OutputOptions
from shardctl.cli.order_options import OrderOptions
from shardctl.cli.output import check_format, screen, warn, write
from shardctl.cli.source import chosen_dataset
from shardctl.cli.values import whole_number
from shardctl.errors import UsageError

_FORMATS = ("table", "json", "yaml", "csv", "ids", "tfds-ids", "jsonl", "npy")
_LONG = 20_000_000  # ids from which writing a file takes seconds


def simulate(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: Annotated[
        str | None,
        typer.Argument(
            metavar="[SPEC]",
            help="What is read, as TFDS writes it [default: train].",
            autocompletion=completion.splits,
        ),
    ] = None,
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
    from shardctl.rendering import documents
    from shardctl.rendering import simulate as rendering

    check_format(out.format, *_FORMATS)
    simulation = simulate_order(
        chosen_dataset(source),
        spec,
        reading.settings(),
        skip=skip,
        take=None if take == -1 else take,
    )
    warn(simulation.warnings)
    chunks: Iterable[str | bytes]
    if out.format == "table":
        chunks = rendering.simulate_table(simulation, screen(out.output))
    elif out.format == "json":
        chunks = documents.to_json(rendering.simulate_document(simulation))
    elif out.format == "yaml":
        chunks = documents.to_yaml(rendering.simulate_document(simulation))
    elif out.format == "csv":
        chunks = documents.to_csv(rendering.CSV_HEADER, rendering.simulate_rows(simulation))
    elif out.format == "npy":
        if out.output is None and sys.stdout.isatty():
            raise UsageError("--format npy writes bytes: name a file with --output FILE")
        chunks = _watched(rendering.array_file(simulation), simulation.take)
    else:
        lines = {
            "ids": rendering.id_lines,
            "tfds-ids": rendering.tfds_id_lines,
            "jsonl": rendering.json_lines,
        }
        chunks = lines[out.format](simulation)
    write(chunks, out.output)


def _watched(chunks: Iterator[bytes], num_ids: int) -> Iterator[bytes]:
    """Yield the chunks, with a bar on stderr that shows how far a long file is."""
    if num_ids < _LONG or not sys.stderr.isatty():
        yield from chunks
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("ids", total=num_ids)
        for chunk in chunks:
            yield chunk
            progress.advance(task, len(chunk) // 8)
