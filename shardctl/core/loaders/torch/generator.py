"""PyTorch's random generator on the CPU, and the permutations it draws.

Sources: aten/src/ATen/core/MT19937RNGEngine.h (the 32 bits of a seed that count),
ATen/native/TensorFactories.cpp, randperm_cpu (Fisher and Yates from the front, one draw of 32 bits
a step below 2^32 / 20 elements), ATen/core/TransformationHelper.h (`random_()` of an int64).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.core.progress import Progress
from shardctl.core.shuffle.window import MAX_BUFFER, Contents, Offsets, replayed
from shardctl.errors import UsageError

MIN_SEED, MAX_SEED = -(1 << 63), (1 << 64) - 1

_DRAWS_PER_SECOND = 200_000_000
_PIECE = 1 << 24  # draws skipped at once
_BYTES = 30  # of memory an example: the permutation, and what it is made with


class Generator:
    """`torch.Generator().manual_seed(seed)`; also torch's default one after `torch.manual_seed`.

    Draws are looked up by their number, of 32 bits each, counted from 0; one after the other is
    cheap, and an earlier one begins anew.

    >>> Generator(5).randperm(6).tolist()
    [5, 0, 1, 3, 4, 2]
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed & 0xFFFFFFFF
        self._bits, self._drawn = self._seeded(), 0

    def draws(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return draws [start, stop)."""
        if start < self._drawn:
            self._bits, self._drawn = self._seeded(), 0
        if start > self._drawn:
            self._skip(start - self._drawn)
        self._drawn = stop
        return self._bits.random_raw(stop - start)

    def int64(self, start: int) -> int:
        """Return what `torch.empty((), dtype=torch.int64).random_()` draws from `start` on."""
        high, low = self.draws(start, start + 2).tolist()
        return int((high << 32 | low) % (1 << 63))

    def randperm(self, num_elements: int, start: int = 0) -> Contents:
        """Return `torch.randperm(num_elements)` from draw `start` on; see `num_draws`.

        Raises:
            UsageError: there are more elements than are shuffled here.
        """
        if num_elements > MAX_BUFFER:
            raise UsageError(
                f"torch.randperm of {num_elements:,} examples takes about "
                f"{num_elements * _BYTES // 10**9} GB here, and more than {MAX_BUFFER:,} are "
                "refused; read fewer of them, a part of the spec at a time, or do not shuffle"
            )

        progress = Progress(None, "examples shuffled", num_elements)

        def offsets(first: int, last: int) -> Offsets:
            left = np.arange(num_elements - first, num_elements - last, -1).astype(np.uint32)
            # The last element stays where it is, and nothing is drawn for it.
            drawn = self.draws(start + first, start + min(last, num_elements - 1))
            left[: len(drawn)] = drawn.astype(np.uint32) % left[: len(drawn)]
            left[len(drawn) :] = 0
            progress.advance(last - first)
            return left

        return replayed(num_elements, num_elements, offsets)

    def _seeded(self) -> np.random.MT19937:
        bits = np.random.MT19937()
        # The public way to the seeding of Matsumoto and Nishimura, which torch has too.
        np.random.RandomState(bits).seed(self._seed)
        return bits

    def _skip(self, count: int) -> None:
        progress = Progress(
            None,
            "draws of earlier epochs skipped",
            count,
            per_second=_DRAWS_PER_SECOND,
            instead="ask for an earlier epoch",
        )
        for done in range(0, count, _PIECE):
            piece = min(_PIECE, count - done)
            self._bits.random_raw(piece, output=False)
            progress.advance(piece)


def num_draws(num_elements: int) -> int:
    """Return how many draws one `randperm` takes.

    >>> [num_draws(count) for count in (0, 1, 10)]
    [0, 0, 9]
    """
    return max(num_elements - 1, 0)


def check_seed(seed: int, what: str) -> int:
    """Return a seed that torch takes; `what` says where it comes from.

    >>> check_seed(-1, "seed") == -1
    True

    Raises:
        UsageError: `torch.Generator.manual_seed` refuses it.
    """
    if not MIN_SEED <= seed <= MAX_SEED:
        raise UsageError(
            f"{what} is {seed}, which torch refuses as a seed: it takes {MIN_SEED} to {MAX_SEED}"
        )
    return seed
