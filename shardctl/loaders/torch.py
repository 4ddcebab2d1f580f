"""The samplers of PyTorch: what its DataLoader reads in order, shuffled, or dealt to ranks.

Sources: torch/utils/data/sampler.py (RandomSampler, BatchSampler), torch/utils/data/distributed.py
(DistributedSampler), torch/utils/data/dataloader.py (_BaseDataLoaderIter draws `_base_seed` from
the loader's generator at each iteration, whatever the workers).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.loader_sequence import Deal, Dealt, LoaderSequence, Permutations
from shardctl.tfdata.shuffle_window import MAX_BUFFER, Contents, Offsets, replayed

BASE_SEED = 2  # draws of 32 bits, for the `_base_seed` of an iteration


def handed_out(asked: LoaderConfig) -> LoaderSequence:
    """Return what one process of `torch.utils.data.DataLoader` hands out."""
    return distributed(asked) if asked.shares else single(asked)


def distributed(asked: LoaderConfig) -> LoaderSequence:
    """Return what a rank is dealt by `DistributedSampler`, whose `set_epoch` is called."""
    if asked.global_seed is not None:
        raise refused(
            "{global_seed} means nothing to DistributedSampler, which shares the examples "
            "among hosts: it has a seed of its own, 0 where a script names none; give "
            "{shuffle_seed=N} in its place"
        )
    n, world = asked.num_examples, asked.num_hosts
    share = n // world if asked.drop_shard_remainder else -(-n // world)
    return dealt(
        asked,
        Deal(host=asked.host, num_hosts=world, size=asked.whole_batches(share)),
        # Its default is shuffle=True with seed=0; here a seed, or the switch, asks for it.
        by_epoch(asked, asked.seed or 0) if asked.shuffles else None,
    )


def single(asked: LoaderConfig) -> LoaderSequence:
    """Return what a DataLoader hands out whose sampler is its own."""
    if asked.drop_shard_remainder:
        raise refused("{drop_shard_remainder=True} needs {host=I/N}")
    permutation = randomly(asked) if asked.shuffles else None
    found = dealt(asked, Deal(size=asked.whole_batches(asked.num_examples)), permutation)
    found.assumptions = workers_end(asked)
    return found


def dealt(asked: LoaderConfig, deal: Deal, permutation: Permutations | None) -> LoaderSequence:
    """Return the epochs that are asked for, each dealt by one deal."""
    _check_workers(asked)
    return Dealt(
        asked.num_examples,
        deal,
        epochs=asked.epochs,
        permutation=permutation,
        batch=asked.batch,
    )


def by_epoch(asked: LoaderConfig, seed: int) -> Permutations:
    """Return the permutations of epochs that each have a generator, of the seed + the epoch."""
    first, last = asked.first_epoch, asked.first_epoch + asked.epochs - 1
    for epoch in (first, last):
        check_seed(seed + epoch, f"the seed {seed} + epoch {epoch}" if epoch else "the seed")
    return lambda epoch: Generator(seed + first + epoch).randperm(asked.num_examples)


def check_any(asked: LoaderConfig) -> None:
    """Refuse an empty dataset, as RandomSampler does."""
    if not asked.num_examples:
        raise UsageError(
            "there are no examples to read, and torch's RandomSampler refuses an empty dataset"
        )


def one_seed(asked: LoaderConfig, own: str = "the seed of the DataLoader's own generator") -> None:
    """Refuse two seeds, of which one would be ignored, and none; `own` is what `seed` is.

    Raises:
        UsageError: both are given.
        UnpredictableOrderError: neither is.
    """
    if asked.seed is not None and asked.global_seed is not None:
        raise refused(
            "{shuffle_seed} is {}, {global_seed} is torch.manual_seed, which it then does not "
            "come from; leave one out",
            own,
        )
    if asked.seed is None and asked.global_seed is None:
        raise UnpredictableOrderError(
            "--shuffle without a seed has another order in each run; give --global-seed N "
            f"where torch.manual_seed(N) is called, or --shuffle-seed N, {own}"
        )


def randomly(asked: LoaderConfig) -> Permutations:
    """Return the permutations of `DataLoader(shuffle=True)`, which draws anew at each iteration."""
    check_any(asked)
    one_seed(asked)
    n, first = asked.num_examples, asked.first_epoch
    if asked.seed is not None:
        own = Generator(check_seed(asked.seed, "the seed of the DataLoader's generator"))
        # Besides its permutation, RandomSampler draws another one of which it takes no element.
        an_epoch = base_seeds(asked) + 2 * num_draws(n)
        return lambda epoch: own.randperm(n, BASE_SEED + (first + epoch) * an_epoch)
    default = Generator(check_seed(asked.global_seed or 0, "the global seed"))
    # An iteration draws two numbers of 64 bits: `_base_seed`, and the seed of its sampler.
    an_epoch = base_seeds(asked) + BASE_SEED
    return lambda epoch: Generator(default.int64(BASE_SEED + (first + epoch) * an_epoch)).randperm(
        n
    )


def base_seeds(asked: LoaderConfig) -> int:
    """Return how many draws an epoch takes for `_base_seed`: workers that stay have one for all."""
    return 0 if asked.persistent_workers else BASE_SEED


def workers_end(asked: LoaderConfig) -> tuple[str, ...]:
    """Return what is assumed of the workers, where starting them draws from what shuffles."""
    later = asked.first_epoch + asked.epochs > 1
    if not (asked.shuffles and asked.workers and later) or asked.persistent_workers is not None:
        return ()
    return (
        (
            "worker processes end with each epoch; if they stay, --persistent-workers, later "
            "epochs have another order; --no-persistent-workers leaves this out"
        ),
    )


def _check_workers(asked: LoaderConfig) -> None:
    if asked.persistent_workers and not asked.workers:
        raise refused("{persistent_workers=True} needs {workers=N}, as torch says")


# PyTorch's random generator on the CPU, and the permutations it draws.
#
# Sources: aten/src/ATen/core/MT19937RNGEngine.h (the 32 bits of a seed that count),
# ATen/native/TensorFactories.cpp, randperm_cpu (Fisher and Yates from the front, one draw of 32
# bits a step below 2^32 / 20 elements), ATen/core/TransformationHelper.h (`random_()` of an
# int64).

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
