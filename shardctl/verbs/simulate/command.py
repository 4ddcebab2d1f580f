# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl simulate`: the order in which examples are read."""

from typing import Annotated, Any

from shardctl.cli import output
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.options.shared import SpecArgument, number

_LINES = ("ids", "tfds-ids")
_IN_PIECES = ("csv", "ids", "tfds-ids", "jsonl", "npy")  # 8 bytes or a line an example
_VIEW = "verbs.simulate.view"
FORMATS = output.formats_of(
    "simulate",
    pictures=True,
    ids=output.as_text(f"{_VIEW}:id_lines"),
    tfds_ids=output.as_text(f"{_VIEW}:tfds_id_lines"),
    jsonl=output.as_text(f"{_VIEW}:simulate_lines"),
    npy=output.as_text(f"{_VIEW}:array_file"),
    python=output.as_code(f"{_VIEW}:simulate_python"),
)


def simulate(
    source: DatasetOptions,
    reading: OrderOptions,
    out: output.OutputOptions,
    spec: SpecArgument = None,
    skip: Annotated[Any, number(minimum=0)] = 0,
    take: Annotated[Any, number(minimum=-1)] = 20,
    picture: output.PictureOption = None,
) -> None:
    """Print the order in which examples are read, computed from metadata alone.


    Options:
      --skip N: Start after N examples of the order, counted over all epochs.
      --take N: Show N examples, -1 for all.

    Examples:
      # The first ids, and a picture of the shards they come from
      shardctl simulate --take 64 --picture -d imagenet2012
      # The whole order with a shuffle buffer, as an array
      shardctl simulate --buffer 10000 --buffer-seed 1 --take -1 -d mnist -o order.npy
      # The tfds_ids of the second batch of host 0 of 4
      shardctl simulate --host 0/4 --skip 256 --take 256 -d mnist -f tfds-ids
    """
    from shardctl.base.progress import Progress
    from shardctl.verbs.simulate.answer import simulate as simulate_order

    to_file = out.output not in (None, "-")
    dataset, settings = asked_for(source, reading)
    simulation = simulate_order(dataset, spec, settings, skip=skip, take=take)
    output.warn(simulation.warnings)
    # The table shows blocks by itself: a picture is drawn if asked for.
    chunks = FORMATS.render(out, simulation, picture=picture is True)
    if not to_file and out.format in _LINES:
        chunks = output.exact_lines(chunks)
    if to_file:  # a pipe ends when its reader has enough
        progress = Progress("examples", simulation.take, instead="ask for fewer with --take N")
        if out.format in _IN_PIECES:
            chunks = progress.over(chunks, _num_examples)
    output.write(chunks, out.output)


def _num_examples(chunk: output.Chunk) -> int:
    """Return about how many examples are in a chunk: 8 bytes or a line each."""
    if isinstance(chunk, memoryview):
        return len(chunk) // 8
    return chunk.count("\n") if isinstance(chunk, str) else chunk.count(b"\n")
