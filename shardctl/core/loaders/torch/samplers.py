"""The samplers of PyTorch: what its DataLoader reads in order, shuffled, or dealt to ranks.

Sources: torch/utils/data/sampler.py (RandomSampler, BatchSampler), torch/utils/data/distributed.py
(DistributedSampler), torch/utils/data/dataloader.py (_BaseDataLoaderIter draws `_base_seed` from
the loader's generator at each iteration, whatever the workers).
"""

from __future__ import annotations

from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import HandedOut
from shardctl.core.loaders.torch.dealt import Deal, Dealt, Permutations
from shardctl.core.loaders.torch.generator import Generator, check_seed, num_draws
from shardctl.core.phrase import phrase
from shardctl.errors import UnpredictableOrderError, UsageError

BASE_SEED = 2  # draws of 32 bits, for the `_base_seed` of an iteration


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of `torch.utils.data.DataLoader` hands out."""
    return distributed(asked) if asked.shares else single(asked)


def distributed(asked: Asked) -> HandedOut:
    """Return what a rank is dealt by `DistributedSampler`, whose `set_epoch` is called."""
    if asked.global_seed is not None:
        raise UsageError(
            phrase(
                "{global_seed} means nothing to DistributedSampler, which {host} stands for: it "
                "has a seed of its own, {shuffle_seed=N}"
            )
        )
    n, world = asked.num_examples, asked.num_hosts
    share = n // world if asked.drop_shard_remainder else -(-n // world)
    return dealt(
        asked,
        Deal(host=asked.host, num_hosts=world, size=whole_batches(asked, share)),
        # Its default is shuffle=True with seed=0; here a seed, or the switch, asks for it.
        by_epoch(asked, asked.seed or 0) if shuffles(asked) else None,
    )


def single(asked: Asked) -> HandedOut:
    """Return what a DataLoader hands out whose sampler is its own."""
    if asked.drop_shard_remainder:
        raise UsageError(phrase("{drop_shard_remainder=True} needs {host=I/N}"))
    permutation = randomly(asked) if shuffles(asked) else None
    found = dealt(asked, Deal(size=whole_batches(asked, asked.num_examples)), permutation)
    found.assumptions = workers_end(asked)
    return found


def shuffles(asked: Asked) -> bool:
    """Whether the examples are shuffled: as asked, else where a seed of the shuffle is given."""
    return asked.seed is not None if asked.shuffle is None else asked.shuffle


def whole_batches(asked: Asked, num_examples: int) -> int:
    """Return how many of an epoch's examples are left where a last batch is dropped."""
    if not asked.drop_remainder or asked.batch is None:
        return num_examples
    return num_examples // asked.batch * asked.batch


def dealt(asked: Asked, deal: Deal, permutation: Permutations | None) -> HandedOut:
    """Return the epochs that are asked for, each dealt by one deal."""
    _check_workers(asked)
    return Dealt(
        asked.num_examples,
        deal,
        epochs=asked.epochs,
        permutation=permutation,
        batch=asked.batch,
    )


def by_epoch(asked: Asked, seed: int) -> Permutations:
    """Return the permutations of epochs that each have a generator, of the seed + the epoch."""
    first, last = asked.first_epoch, asked.first_epoch + asked.epochs - 1
    for epoch in (first, last):
        check_seed(seed + epoch, f"the seed {seed} + epoch {epoch}" if epoch else "the seed")
    return lambda epoch: Generator(seed + first + epoch).randperm(asked.num_examples)


def check_any(asked: Asked) -> None:
    """Refuse an empty dataset, as RandomSampler does."""
    if not asked.num_examples:
        raise UsageError(
            "there are no examples to read, and torch's RandomSampler refuses an empty dataset"
        )


def one_seed(asked: Asked, own: str = "the seed of the DataLoader's own generator") -> None:
    """Refuse two seeds, of which one would be ignored, and none; `own` is what `seed` is.

    Raises:
        UsageError: both are given.
        UnpredictableOrderError: neither is.
    """
    if asked.seed is not None and asked.global_seed is not None:
        raise UsageError(
            phrase(
                "{shuffle_seed} is {}, {global_seed} is torch.manual_seed, which it then does not "
                "come from; leave one out",
                own,
            )
        )
    if asked.seed is None and asked.global_seed is None:
        raise UnpredictableOrderError(
            phrase(
                "{shuffle=True} without a seed has another order in each run; give {global_seed=N} "
                "where torch.manual_seed(N) is called, or {shuffle_seed=N}, {}",
                own,
            )
        )


def randomly(asked: Asked) -> Permutations:
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


def base_seeds(asked: Asked) -> int:
    """Return how many draws an epoch takes for `_base_seed`: workers that stay have one for all."""
    return 0 if asked.persistent_workers else BASE_SEED


def workers_end(asked: Asked) -> tuple[str, ...]:
    """Return what is assumed of the workers, where starting them draws from what shuffles."""
    later = asked.first_epoch + asked.epochs > 1
    if not (shuffles(asked) and asked.workers and later) or asked.persistent_workers is not None:
        return ()
    return (
        phrase(
            "worker processes end with each epoch; if they stay, {persistent_workers=True}, later "
            "epochs have another order; {persistent_workers=False} leaves this out"
        ),
    )


def _check_workers(asked: Asked) -> None:
    if asked.persistent_workers and not asked.workers:
        raise UsageError(phrase("{persistent_workers=True} needs {workers=N}, as torch says"))
