"""The hash tree over an order, from which `diff` finds the blocks in which two orders differ.

An order is cut into cells of 4,096 positions. Each has a digest, a leaf covers a power of two of
them, and the root stands for the whole order. Snapshots keep the leaves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.order.example_codes import SplitIds
from shardctl.order.order import Order, ignore

CELL_SIZE = 4096  # ids; 2 ns an id with SHA instructions, a tenth more than in one piece
MAX_LEAVES = 512
VERSIONS = (1, 2)  # of the digests of cells: by ids, and by runs where there are some
NEWEST = VERSIONS[-1]
DIGEST_BYTES = 16


def digest(data: bytes) -> bytes:
    """Return the first 16 bytes of a SHA-256."""
    return hashlib.sha256(data).digest()[:DIGEST_BYTES]


def leaf_size(num_examples: int) -> int:
    """Return the positions under a leaf: a power of two, so that those of two orders fit.

    >>> leaf_size(0), leaf_size(1_281_167), leaf_size(10**9)
    (4096, 4096, 2097152)
    """
    # At most MAX_LEAVES leaves, so a snapshot stays small however long the order is.
    size = CELL_SIZE
    while size * MAX_LEAVES < num_examples:
        size *= 2
    return size


@dataclass(frozen=True, kw_only=True)
class HashTree:
    """The leaves of the tree over an order of `num_examples` positions, in order.

    version: of the digests of cells.

    >>> tree = HashTree.of_cells([b"a", b"b"], num_examples=5000)
    >>> tree.leaf_size, tree.leaves, tree.root == digest(b"node" + b"ab")
    (4096, (b'a', b'b'), True)
    """

    num_examples: int
    leaves: tuple[bytes, ...]
    version: int = NEWEST

    def __post_init__(self) -> None:
        needed = -(-self.num_examples // self.leaf_size)
        if len(self.leaves) != needed:
            raise ValueError(
                f"{len(self.leaves)} leaves; {self.num_examples} examples have {needed}"
            )

    @classmethod
    def of_cells(
        cls, cells: Iterable[bytes], *, num_examples: int, version: int = NEWEST
    ) -> HashTree:
        """Return the tree over the digests of an order's cells, in memory for one leaf."""
        width = leaf_size(num_examples) // CELL_SIZE
        remaining = iter(cells)
        leaves = []
        # The cells are a stream: only those of one leaf are in memory.
        while group := list(islice(remaining, width)):
            leaves.append(_root(group))
        return cls(num_examples=num_examples, leaves=tuple(leaves), version=version)

    @property
    def leaf_size(self) -> int:
        """Number of positions under a leaf; the last one may have fewer."""
        return leaf_size(self.num_examples)

    @cached_property
    def root(self) -> bytes:
        """The digest of the whole order; two orders are the same when it is."""
        return _root(self.leaves) if self.leaves else digest(b"empty")

    def blocks(self, size: int) -> Sequence[bytes]:
        """Return the digests of blocks of `size` positions, which is a power of two of leaves.

        Raises:
            ValueError: `size` is below that of a leaf.
        """
        if size < self.leaf_size:
            raise ValueError(f"no digests of blocks of {size}, leaves have {self.leaf_size}")
        blocks: Sequence[bytes] = self.leaves
        # log2(size / leaf_size) levels up. A leaf size that is a power of two makes the levels of
        # two trees coincide.
        for _ in range((size // self.leaf_size).bit_length() - 1):
            blocks = _parents(blocks)
        return blocks


def differing_blocks(one: HashTree, other: HashTree) -> tuple[int, list[int]]:
    """Return (size of a block in positions, indices of the blocks in which two orders differ).

    Beyond the end of the shorter order every block differs. Both are of one version.

    >>> tree = HashTree.of_cells([b"a", b"b"], num_examples=5000)
    >>> differing_blocks(tree, HashTree.of_cells([b"a", b"x", b"y"], num_examples=9000))
    (4096, [1, 2])
    """
    if one.version != other.version:
        raise ValueError(f"digests of versions {one.version} and {other.version}")
    size = max(one.leaf_size, other.leaf_size)
    # None stands opposite the blocks that only the longer order has, and is unlike any digest.
    pairs = zip_longest(one.blocks(size), other.blocks(size))
    return size, [index for index, (left, right) in enumerate(pairs) if left != right]


def _parents(nodes: Sequence[bytes]) -> list[bytes]:
    # An odd node at the end moves up as it is. "node" in front keeps a parent's digest from ever
    # being that of a cell.
    left, right = nodes[::2], nodes[1::2]
    pairs = zip(left, right, strict=False)
    parents = [hashlib.sha256(b"node" + a + b).digest()[:DIGEST_BYTES] for a, b in pairs]
    return [*parents, *left[len(right) :]]


def _root(nodes: Sequence[bytes]) -> bytes:
    while len(nodes) > 1:
        nodes = _parents(nodes)
    return nodes[0]


def tree_of(
    order: Order, *, version: int = NEWEST, advance: Callable[[int], None] = ignore
) -> HashTree:
    """Return the hash tree over an order; `advance` is called with the positions done.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.spec.subsplit import SplitRange
    >>> from shardctl.order.reader_order import ReaderOrder
    >>> from shardctl.settings.read_settings import ReadSettings
    >>> train = Split.even(name="train", num_examples=5000, num_shards=3)
    >>> dataset = Dataset(name="d", splits=(train,))
    >>> order = ReaderOrder(dataset, [SplitRange(split=train, start=0, stop=5000)], ReadSettings())
    >>> tree = tree_of(order)
    >>> tree.version, len(tree.leaves)
    (2, 2)
    """

    def reported() -> Iterator[Int64s]:
        for codes in order.chunks(0, order.num_examples):
            yield codes
            advance(len(codes))

    cells = digests_of(reported(), order.codes.splits, version=version)
    return HashTree.of_cells(cells, num_examples=order.num_examples, version=version)


# The digest of a cell: which examples are at 4,096 positions, whatever the layout of the dataset.
#
# It is over the split's name and the ids, little endian, in 4 bytes where all of the cell fit;
# where the splits of a cell differ, over their names, the index of the name at each position, and
# the ids in 8 bytes. That is version 1. In version 2 a cell of one split whose ids count on one by
# one, in at most a third as many runs as positions, none of which begins with an id from 2**51 on,
# is hashed as its first id, then the place and the first id of every other run, 8 bytes each.

_NARROW = 1 << 32  # ids below this are hashed as 4 bytes
_PLACE_BITS = (CELL_SIZE - 1).bit_length()
_MAX_ID = 1 << 63 - _PLACE_BITS  # of a run, so that its place and its first id fit an int64
_FEWER = 3  # times as many positions as runs
_AT_ONCE = 1 << 16  # positions that stay in the cache


def digests_of(
    chunks: Iterable[Int64s], splits: SplitIds, *, version: int = NEWEST
) -> Iterator[bytes]:
    """Yield the digest of each cell of an order, from its codes in pieces of any size.

    >>> splits = SplitIds(names=("train",), starts=np.array([0]))
    >>> first = list(digests_of([np.arange(9)], splits))
    >>> first == list(digests_of([np.arange(4), np.arange(4, 9)], splits)), len(first[0])
    (True, 16)
    """
    for codes in whole_cells(chunks):
        # `codes` are whole cells (the last may be short), so every cell begins at a multiple of
        # CELL_SIZE.
        split, ids = splits.split_ids(codes)
        places = np.arange(0, len(ids), CELL_SIZE)
        # Where a run ends and the next one begins: int64[runs - 1], all cells of the piece
        # together.
        begins = np.flatnonzero(ids[1:] - ids[:-1] != 1) + 1 if version > 1 else np.arange(0)
        # One int64 a run: its first id above, its place in its cell in the low 12 bits. Ids from
        # _MAX_ID on overflow here; the test below keeps such cells out of this form.
        firsts = (ids[begins] << _PLACE_BITS) + (begins & CELL_SIZE - 1)
        runs = firsts.astype("<i8", copy=False).tobytes()
        # The runs that begin within each cell, behind its first position.
        lows = begins.searchsorted(places, "right").tolist()
        highs = begins.searchsorted(places + CELL_SIZE, "left").tolist()
        is_small = version > 1 and ids.max() < _MAX_ID
        for start, low, high in zip(places.tolist(), lows, highs, strict=True):
            here = ids[start : start + CELL_SIZE]
            name = splits.names[0]
            if len(splits.names) > 1:
                kinds = split[start : start + CELL_SIZE]
                name = splits.names[kinds[0]]
                # Names, not indices, are hashed, so a digest does not depend on which other splits
                # there are.
                if (kinds != kinds[0]).any():
                    yield _mixed(kinds, here, splits.names)
                    continue
            # Each run takes 8 bytes, each position 4 in the other form: runs pay where there are
            # few.
            few = version > 1 and _FEWER * (high - low + 1) <= len(here)
            if few and (is_small or max(here[0], ids[begins[low:high]].max(initial=0)) < _MAX_ID):
                head = int(here[0]).to_bytes(8, "little")
                yield _hashed(f"runs {len(here)} {name}", head + runs[8 * low : 8 * high])
            else:
                # The itemsize is part of the hashed header, so narrow and wide cells cannot
                # collide.
                column = here.astype("<u4" if here.max() < _NARROW else "<i8")
                yield _hashed(f"cell {column.itemsize} {name}", column.tobytes())


def whole_cells(chunks: Iterable[Int64s]) -> Iterator[Int64s]:
    """Yield codes that come in pieces of any size as whole cells; the last one may be cut.

    >>> [len(codes) for codes in whole_cells([np.arange(5), np.arange(8000), np.arange(4)])]
    [4096, 3913]
    """
    rest = np.empty(0, np.int64)
    for chunk in chunks:
        # How many ids the carried rest still needs to be a whole cell; 0 where nothing is carried.
        missing = -len(rest) % CELL_SIZE
        if missing:  # only what fills its cell is copied
            rest = np.concatenate([rest, chunk[:missing]])
            if len(rest) < CELL_SIZE:
                continue
            yield rest
        # The end of the last whole cell in this chunk; `missing` at least, as the chunk was long
        # enough.
        whole = len(chunk) - (len(chunk) - missing) % CELL_SIZE
        for start in range(missing, whole, _AT_ONCE):
            yield chunk[start : min(start + _AT_ONCE, whole)]
        rest = chunk[whole:]
    if len(rest):
        yield rest


def _mixed(split: Int64s, ids: Int64s, names: tuple[str, ...]) -> bytes:
    # Named in the order of their names: the same cell whatever order the dataset has.
    by_name = sorted(set(split.tolist()), key=names.__getitem__)
    rank = np.zeros(len(names), "<u4")
    rank[by_name] = np.arange(len(by_name))
    said = " ".join(["mixed", *map(names.__getitem__, by_name)])
    return _hashed(said, rank[split].tobytes() + ids.astype("<i8").tobytes())


def _hashed(said: str, data: bytes) -> bytes:
    return digest(f"{said}\n".encode("utf-8", "surrogatepass") + data)
