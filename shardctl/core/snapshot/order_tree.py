"""The hash tree over an order, and the digests of a part of it, in any version of the digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from shardctl.core.arrays import Int64s
from shardctl.core.interleave.runs import Runs
from shardctl.core.order.order import Order
from shardctl.core.snapshot.cells import SplitIds, cell_digests
from shardctl.core.snapshot.hash_tree import NEWEST, HashTree
from shardctl.core.snapshot.run_cells import digests_of_codes, digests_of_runs


def _ignore(count: int) -> None:
    """Take a report that nobody wants."""


def tree_of(
    order: Order,
    splits: SplitIds,
    *,
    version: int = NEWEST,
    advance: Callable[[int], None] = _ignore,
) -> HashTree:
    """Return the hash tree over an order; `advance` is told how many positions are done.

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.core.instructions.split_range import SplitRange
    >>> from shardctl.core.settings.read_settings import ReadSettings
    >>> train = Split.even(name="train", num_examples=5000, num_shards=3)
    >>> dataset = Dataset(name="d", splits=(train,))
    >>> order = Order(dataset, [SplitRange(split=train, start=0, stop=5000)], ReadSettings())
    >>> tree = tree_of(order, SplitIds.of(dataset, ["train"]))
    >>> tree.version, len(tree.leaves)
    (2, 2)
    """
    cells = cells_of(order, 0, order.num_examples, splits, version=version, advance=advance)
    return HashTree.of_cells(cells, num_examples=order.num_examples, version=version)


def cells_of(
    order: Order,
    start: int,
    stop: int,
    splits: SplitIds,
    *,
    version: int = NEWEST,
    advance: Callable[[int], None] = _ignore,
) -> Iterator[bytes]:
    """Yield the digests of the cells of an order at [start, stop); a cell begins at `start`."""
    if version == 1 or not order.has_long_runs:
        return digests_of(_told(order.chunks(start, stop), advance), splits, version=version)
    return digests_of_runs(_told_runs(order.visits(start, stop), advance), splits)


def digests_of(chunks: Iterable[Int64s], splits: SplitIds, *, version: int) -> Iterator[bytes]:
    """Yield the digests of the cells of an order, from its codes in pieces of any size."""
    return (cell_digests if version == 1 else digests_of_codes)(chunks, splits)


def _told(chunks: Iterable[Int64s], advance: Callable[[int], None]) -> Iterator[Int64s]:
    for chunk in chunks:
        yield chunk
        advance(len(chunk))


def _told_runs(runs: Iterable[Runs], advance: Callable[[int], None]) -> Iterator[Runs]:
    for piece in runs:
        yield piece
        advance(int(piece[1].sum()))
