"""A hash tree over an order: two orders are compared, block by block, without either of them.

The order is cut into cells of 4,096 positions. A cell's digest says which examples of which splits
are in it, whatever the layout of the dataset; the digest of two neighbours is that of both
digests, and a last one without a neighbour moves up as it is (the tree of RFC 6962, section 2.1).
What is kept is the level of the tree that has at most 512 nodes, the leaves. Digests of cells have
versions: trees of one version are compared.

A digest has 128 bits: among n different orders some two share a root with odds of n^2 / 2^129.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest

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
    pairs = zip_longest(one.blocks(size), other.blocks(size))
    return size, [index for index, (left, right) in enumerate(pairs) if left != right]


def _parents(nodes: Sequence[bytes]) -> list[bytes]:
    left, right = nodes[::2], nodes[1::2]
    parents = [
        hashlib.sha256(b"node" + one + other).digest()[:DIGEST_BYTES]
        for one, other in zip(left, right, strict=False)
    ]
    return [*parents, *left[len(right) :]]


def _root(nodes: Sequence[bytes]) -> bytes:
    while len(nodes) > 1:
        nodes = _parents(nodes)
    return nodes[0]
