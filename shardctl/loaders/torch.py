"""The orders of PyTorch's DataLoader, of torchdata's and of Accelerate's.

Each shuffles by permutations, which are then dealt to hosts and workers.

Sources: torch/utils/data/sampler.py (RandomSampler, BatchSampler), torch/utils/data/distributed.py
(DistributedSampler), torch/utils/data/dataloader.py (_BaseDataLoaderIter draws `_base_seed` from
the loader's generator at each iteration, whatever the workers).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader_sequence import Deal, Dealt, LoaderConfig, LoaderSequence, Permutations
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER, Contents, Offsets, replayed

_BASE_SEED = 2  # draws of 32 bits, for the `_base_seed` of an iteration
_AS_THE_TRAINER = (
    "use_seedable_sampler=True, as the Trainer sets it; Accelerator() alone has another order, "
    "which --shuffle with --global-seed N is, the seed of set_seed or torch.manual_seed"
)
_OWN_GENERATOR = (
    "the seed is that of the loader's own generator=torch.Generator().manual_seed(N); for "
    "torch.manual_seed(N) alone give --shuffle --global-seed N"
)
_NOT_SHUFFLED = "shuffle=False, so the global seed changes nothing; with shuffle=True add --shuffle"
_WORKERS_END = (
    "worker processes end with each epoch; if they stay, --persistent-workers, later "
    "epochs have another order; --no-persistent-workers leaves this out"
)


def torch_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process of `torch.utils.data.DataLoader` yields."""
    return _distributed(config) if config.shares else _single(config, _random_sampler)


def stateful_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process of torchdata's StatefulDataLoader yields."""
    return _distributed(config) if config.shares else _single(config, _stateful_sampler)


def accelerate_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process yields of a DataLoader that Accelerate has prepared.

    Sources: accelerate/data_loader.py (SeedableRandomSampler, BatchSamplerShard,
    prepare_data_loader) with `even_batches` and without `split_batches`. A seed of the shuffle is
    the Trainer's, which sets `use_seedable_sampler`; `torch.manual_seed` is what the order comes
    from without it, which is the default of `Accelerator()`.
    """
    permutations = None
    if config.shuffles:
        _check_any(config)
        _check_one_seed(config, "the data_seed or seed of the Trainer")
        permutations = _accelerate_sampler(config)
    found = _dealt(config, _deal_of_batches(config), permutations)
    if config.shuffles and config.seed is not None:
        found.assumptions = (_AS_THE_TRAINER,)
    else:
        workers = _assumed_of_workers(config) if config.num_hosts == 1 else ()
        found.assumptions = (*_assumed_of_seeds(config), *workers)
    return found


def _distributed(config: LoaderConfig) -> LoaderSequence:
    """Return what a rank is dealt by `DistributedSampler`, whose `set_epoch` is called."""
    if config.global_seed is not None:
        raise refused(
            "{global_seed} has no meaning for DistributedSampler, which shares the examples among "
            "hosts; give its seed, {shuffle_seed=N}, which is 0 by default"
        )
    n, world = config.num_examples, config.num_hosts
    share = n // world if config.drop_shard_remainder else -(-n // world)
    # DistributedSampler pads to a multiple of the ranks, or drops the remainder; then whole batches
    # of what is left.
    deal = Deal(host=config.host, num_hosts=world, size=config.whole_batches(share))
    # Its default is shuffle=True with seed=0; here a seed, or the switch, asks for it.
    return _dealt(config, deal, _by_epoch(config, config.seed or 0) if config.shuffles else None)


def _single(
    config: LoaderConfig, sampler: Callable[[LoaderConfig], Permutations]
) -> LoaderSequence:
    """Return what a loader yields whose sampler is its own."""
    if config.drop_shard_remainder:
        raise refused("{drop_shard_remainder=True} needs {host=I/N}")
    permutations = None
    if config.shuffles:
        _check_any(config)
        _check_one_seed(config, "the seed of the DataLoader's own generator")
        permutations = sampler(config)
    found = _dealt(config, Deal(size=config.whole_batches(config.num_examples)), permutations)
    found.assumptions = (*_assumed_of_seeds(config), *_assumed_of_workers(config))
    return found


def _dealt(config: LoaderConfig, deal: Deal, permutations: Permutations | None) -> Dealt:
    if config.persistent_workers and not config.workers:
        raise refused("{persistent_workers=True} needs {workers=N}, as torch says")
    return Dealt(
        config.num_examples,
        deal,
        epochs=config.epochs,
        permutation=permutations,
        batch=config.batch,
    )


def _deal_of_batches(config: LoaderConfig) -> Deal:
    """Return how Accelerate deals whole batches to its processes."""
    n, world = config.num_examples, config.num_hosts
    # Accelerate's BatchSamplerShard works on batches, so the deal is by blocks of a batch.
    if config.batch is None:  # prepare_data_loader then drops the sampler, too
        raise refused(
            "Accelerate deals whole batches to its processes; give {batch=N} of one process"
        )
    if world == 1:  # prepare_data_loader leaves the batches as they are
        return Deal(size=config.whole_batches(n))
    a_round = config.batch * world
    # A round is a batch for each process. With even_batches an incomplete round is filled from the
    # start of the epoch.
    rounds = n // a_round if config.drop_remainder else -(-n // a_round)
    size = rounds * config.batch
    return Deal(host=config.host, num_hosts=world, block=config.batch, size=size)


def _by_epoch(config: LoaderConfig, seed: int) -> Permutations:
    """Return the permutations of epochs that each have a generator, of the seed + the epoch."""
    first, last = config.first_epoch, config.first_epoch + config.epochs - 1
    # Seeds grow with the epoch, so the first and the last are the extremes.
    for epoch in (first, last):
        check_seed(seed + epoch, f"the seed {seed} + epoch {epoch}" if epoch else "the seed")
    # The epoch counts from the first one read, and the seed from 0.
    return lambda epoch: Generator(seed + first + epoch).randperm(config.num_examples)


def _random_sampler(config: LoaderConfig) -> Permutations:
    """Return the permutations of `DataLoader(shuffle=True)`, which draws anew at each iteration."""
    n, first = config.num_examples, config.first_epoch
    if config.seed is not None:
        own = Generator(check_seed(config.seed, "the seed of the DataLoader's generator"))
        # Besides its permutation, RandomSampler draws another one of which it takes no element.
        an_epoch = _base_seeds(config) + 2 * num_draws(n)
        # Draws per epoch: `_base_seed` of the loader, the permutation, and the one that is drawn
        # and not used.
        return lambda epoch: own.randperm(n, _BASE_SEED + (first + epoch) * an_epoch)
    default = _default_generator(config)
    # An iteration draws two numbers of 64 bits: `_base_seed`, and the seed of its sampler.
    an_epoch = _base_seeds(config) + _BASE_SEED

    def permutation(epoch: int) -> Contents:
        # The sampler's own generator is seeded by the second number that the iteration draws.
        return Generator(default.int64(_BASE_SEED + (first + epoch) * an_epoch)).randperm(n)

    return permutation


def _stateful_sampler(config: LoaderConfig) -> Permutations:
    """Return the permutations of torchdata's RandomSampler, of one generator for all epochs.

    Sources: torchdata/stateful_dataloader/sampler.py (it is seeded when the loader is made, and an
    iterator of it permutes when it is made) and stateful_dataloader.py (an iterator of the loader
    makes one of the sampler, and another in `_reset`, which is called where there are workers;
    workers that stay are started once, and their epochs begin with `_reset` alone). What a state
    restores is the generator before the permutation in use, so epochs after a resume are those of
    a run that was not interrupted.
    """
    n, own = config.num_examples, config.seed is not None
    if config.seed is not None:
        generator = Generator(check_seed(config.seed, "the seed of the loader's generator"))
    else:
        # Without a seed of its own, the sampler draws its seed from the default generator once.
        generator = Generator(_default_generator(config).int64(0))
    first, an_epoch = 0, num_draws(n)
    if config.workers:
        # With workers an iterator makes two iterators of the sampler; with workers that stay, only
        # `_reset` does.
        first = an_epoch
        an_epoch *= 1 if config.persistent_workers else 2
    if own:  # `_base_seed` is drawn from it, too, after the first permutation of an iterator
        first += _BASE_SEED if config.workers else 0
        an_epoch += _base_seeds(config)
    return lambda epoch: generator.randperm(n, first + (config.first_epoch + epoch) * an_epoch)


def _accelerate_sampler(config: LoaderConfig) -> Permutations:
    """Return those of its seedable sampler, as the Trainer sets it, or of torch's RandomSampler.

    `prepare_data_loader` gives the RandomSampler of several processes a generator, seeded by the
    first draw; a lone process iterates torch's DataLoader as it is.
    """
    if config.seed is not None:
        return _by_epoch(config, check_seed(config.seed, "the seed"))
    if config.num_hosts == 1:
        return _random_sampler(config)
    n, own = config.num_examples, Generator(_default_generator(config).int64(0))
    # RandomSampler draws another permutation at its end, of which it takes no element.
    return lambda epoch: own.randperm(n, (config.first_epoch + epoch) * 2 * num_draws(n))


def _default_generator(config: LoaderConfig) -> Generator:
    return Generator(check_seed(config.global_seed or 0, "the global seed"))


def _check_any(config: LoaderConfig) -> None:
    """Refuse an empty dataset, as RandomSampler does."""
    if not config.num_examples:
        raise UsageError(
            "there are no examples to read, and torch's RandomSampler refuses an empty dataset"
        )


def _check_one_seed(config: LoaderConfig, own: str) -> None:
    """Refuse two seeds, of which one would be ignored, and none; `own` is what `seed` is.

    Raises:
        UsageError: both are given.
        UnpredictableOrderError: neither is.
    """
    if config.seed is not None and config.global_seed is not None:
        raise refused(
            "{shuffle_seed} is {}, {global_seed} is torch.manual_seed, which it then does not "
            "come from; leave one out",
            own,
        )
    if config.seed is None and config.global_seed is None:
        raise UnpredictableOrderError(
            f"--shuffle without a seed has another order in each run; give --shuffle-seed N, {own}"
            ", or --global-seed N, that of torch.manual_seed"
        )


def _base_seeds(config: LoaderConfig) -> int:
    """Return how many draws an epoch takes for `_base_seed`: workers that stay have one for all."""
    return 0 if config.persistent_workers else _BASE_SEED


def _assumed_of_seeds(config: LoaderConfig) -> tuple[str, ...]:
    """Return what is assumed of a seed that a script may use in two ways, or not at all."""
    if config.seed is not None:
        return (_OWN_GENERATOR,)
    silent = config.global_seed is not None and not config.shuffles and config.shuffle is None
    return (_NOT_SHUFFLED,) if silent else ()


def _assumed_of_workers(config: LoaderConfig) -> tuple[str, ...]:
    """Return what is assumed of the workers, where starting them draws from what shuffles."""
    later = config.first_epoch + config.epochs > 1
    draws = config.shuffles and config.workers and later
    return (_WORKERS_END,) if draws and config.persistent_workers is None else ()


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
        # torch takes 64 bits; the Mersenne Twister is seeded with the low 32.
        self._seed = seed & 0xFFFFFFFF
        self._bits, self._drawn = self._seeded(), 0

    def draws(self, start: int, stop: int) -> NDArray[np.uint64]:
        """Return draws [start, stop)."""
        # An earlier draw than where the generator stands: from the start again.
        if start < self._drawn:
            self._bits, self._drawn = self._seeded(), 0
        if start > self._drawn:
            self._skip(start - self._drawn)
        self._drawn = stop
        return self._bits.random_raw(stop - start)

    def int64(self, start: int) -> int:
        """Return what `torch.empty((), dtype=torch.int64).random_()` draws from `start` on."""
        # The first draw is the high word; random_() of int64 keeps 63 bits.
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

        progress = Progress("examples shuffled", num_elements)

        def offsets(first: int, last: int) -> Offsets:
            # Fisher-Yates from the front: step i swaps with i + draw % (n - i). `left` are the
            # moduli n - i, shape (last - first,).
            left = np.arange(num_elements - first, num_elements - last, -1).astype(np.uint32)
            # The last element stays where it is, and nothing is drawn for it.
            drawn = self.draws(start + first, start + min(last, num_elements - 1))
            # uint32 arithmetic, as in C++.
            left[: len(drawn)] = drawn.astype(np.uint32) % left[: len(drawn)]
            left[len(drawn) :] = 0
            progress.advance(last - first)
            return left

        return replayed(num_elements, num_elements, offsets)

    def _seeded(self) -> np.random.MT19937:
        bits = np.random.MT19937()
        # The public way to the seeding of Matsumoto and Nishimura, which torch has too.
        # NumPy's `MT19937(seed)` seeds in another way (SeedSequence).
        np.random.RandomState(bits).seed(self._seed)
        return bits

    def _skip(self, count: int) -> None:
        progress = Progress(
            "draws of earlier epochs skipped",
            count,
            per_second=_DRAWS_PER_SECOND,
            instead="ask for an earlier epoch",
        )
        # In pieces, so that progress is seen; `output=False` keeps no array.
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
