"""How an order is shuffled as pictures: what is read when, scores, ways to read side by side.

A picture of the whole order says what a figure cannot: whether it follows storage, in lumps, or
without a pattern.
"""

from __future__ import annotations

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted, first_upper
from shardctl.draw.picture import Bar, Heat, Line, Paper, Picture, Series, bar_lines
from shardctl.draw.quantities import human_bytes
from shardctl.order.order import Order
from shardctl.order.sample import OrderSample, epoch_length, storage_order
from shardctl.order.shard_map import NUM_COLUMNS, NUM_ROWS, looked_up
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.compare_loaders import LoaderComparison
from shardctl.verbs.quality.metrics import MIXED, even_from_afar
from shardctl.verbs.quality.view import best_line

_LOOKED_UP = 1 << 16  # positions of a long epoch


def quality_pictures(quality: Quality, paper: Paper) -> tuple[Picture, ...]:
    """Return which part of the dataset is read when, and what would help."""
    found = order_picture(quality)
    return (found, what_if_picture(quality, paper)) if quality.alternatives else (found,)


def order_picture(quality: Quality) -> Picture:
    """Return which part of storage the examples of the first epoch come from, and when.

    Where an order that is locally not mixed is one even shade yet, there is a warning.
    """
    heat = Heat(counts=_counts(quality), below=f"position {epoch_length(quality.order) - 1:,}")
    is_finer = quality.verdict not in MIXED and heat.is_even
    return Picture(
        title="Which part of the dataset is read when",
        caption="Left to right is the epoch, top to bottom the files in order. A cell with more "
        "examples stands out more. A good shuffle is one even shade, no shuffle a diagonal line.",
        said="Every part of the epoch reads from the whole dataset."
        if heat.is_even
        else "Some parts of the epoch read more from some parts of the dataset than from others.",
        marks=(heat,),
        warnings=(even_from_afar(quality.verdict),) if is_finer else (),
    )


def _counts(quality: Quality) -> Int64s:
    """Return how many examples of each part of storage come in each part of the epoch."""
    ranks, num_ranks = places(quality.order, quality.sample)
    shape = min(NUM_ROWS, num_ranks), min(NUM_COLUMNS, len(ranks))
    # Cells of the picture: a row for a part of storage, a column for a part of the epoch. The
    # product in floats may round up to one row too many.
    rows = (ranks * (shape[0] / num_ranks)).astype(np.int64).clip(0, shape[0] - 1)
    columns = np.arange(len(ranks)) * shape[1] // len(ranks)
    # Cell (r, c) counts at index r * columns + c.
    cells = np.bincount(rows * shape[1] + columns, minlength=shape[0] * shape[1])
    return cells.reshape(shape)


def places(order: Order, sample: OrderSample) -> tuple[Int64s, int]:
    """Return the place in storage of the examples of the first epoch, of how many.

    int64[n], in the order of the epoch. Of an epoch that is measured in samples single positions
    are looked up, one in each of equal parts: a sample would show the few shards that the
    interleave reads at a time.
    """
    if sample.complete:
        return sample.ranks[0], sample.num_ranks
    storage = storage_order(order)
    return storage.of(looked_up(order, _LOOKED_UP))[0], storage.num_ranks


def what_if_picture(quality: Quality, paper: Paper) -> Picture:
    """Return what other settings would score, with the memory of each buffer that is new."""
    sizes = (choice.num_bytes for choice in quality.alternatives)
    rows = [
        (choice.change, choice.score.value, "" if size is None else f" {human_bytes(size)}")
        for choice, size in zip(quality.alternatives, sizes, strict=True)
    ]
    rows.append(("uniform", quality.score.expected, ""))
    return Picture(
        title="What other settings would score",
        caption="The score after a change of one or two settings, with the memory of the buffer.",
        said=f"{first_upper(best_line(quality))}.",
        marks=_bars("change", "score", rows, paper, full=1.0, digits=3),
    )


def loaders_pictures(comparison: LoaderComparison, paper: Paper) -> tuple[Picture, ...]:
    """Return from how many shards a batch of each way to read comes, beside a uniform one."""
    read = [(way.reader, way.mixing.shards, "") for way in comparison.ways if way.mixing]
    rows = [*read, ("uniform", comparison.uniform_shards, "")]
    refused = ", ".join(way.reader for way in comparison.ways if way.refused is not None)
    return (
        Picture(
            title=f"From how many of {counted(comparison.num_shards, 'shard')} a batch comes",
            caption="The last bar is a uniform permutation."
            + f" Not possible here: {refused}." * bool(refused),
            said=f"A batch comes from at most {max((n for _, n, _ in read), default=0):.1f} "
            f"shards; of a uniform permutation from {comparison.uniform_shards:.1f}.",
            marks=_bars("reader", "shards", rows, paper, digits=1) if read else (),
        ),
    )


def _bars(
    heading: str,
    measure: str,
    rows: list[tuple[str, float, str]],
    paper: Paper,
    *,
    digits: int,
    full: float = 0.0,
) -> tuple[Line, ...]:
    """Return a bar a row: its label, its value, and what stands behind the value."""
    bars = [Bar(value, value, f"{value:.{digits}f}{more}") for _, value, more in rows]
    return tuple(
        bar_lines(heading, [one for one, *_ in rows], [Series(measure, bars, full)], paper)
    )
