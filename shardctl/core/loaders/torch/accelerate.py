"""Hugging Face Accelerate, as its Trainer uses it: one permutation, whose batches are dealt.

Sources: accelerate/data_loader.py (SeedableRandomSampler, BatchSamplerShard, prepare_data_loader)
with `use_seedable_sampler`, `even_batches` and without `split_batches`, which are the Trainer's.
"""

from __future__ import annotations

from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import HandedOut
from shardctl.core.loaders.torch.dealt import Deal
from shardctl.core.loaders.torch.generator import check_seed
from shardctl.core.loaders.torch.samplers import (
    by_epoch,
    check_any,
    dealt,
    shuffles,
    whole_batches,
)
from shardctl.core.phrase import phrase
from shardctl.errors import UnpredictableOrderError, UsageError


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process hands out of a DataLoader that Accelerate has prepared."""
    permutation = None
    if shuffles(asked):
        check_any(asked)
        if asked.seed is None:
            raise UnpredictableOrderError(
                phrase(
                    "{shuffle=True} without a seed has another order in each run; give "
                    "{shuffle_seed=N}, the data_seed or seed of the Trainer"
                )
            )
        permutation = by_epoch(asked, check_seed(asked.seed, "the seed"))
    return dealt(asked, _deal(asked), permutation)


def _deal(asked: Asked) -> Deal:
    n, world = asked.num_examples, asked.num_hosts
    if asked.batch is None:  # prepare_data_loader then drops the sampler, too
        raise UsageError(
            phrase("Accelerate deals whole batches to its processes; give {batch=N} of one process")
        )
    if world == 1:  # prepare_data_loader leaves the batches as they are
        return Deal(size=whole_batches(asked, n))
    a_round = asked.batch * world
    rounds = n // a_round if asked.drop_remainder else -(-n // a_round)
    return Deal(host=asked.host, num_hosts=world, block=asked.batch, size=rounds * asked.batch)
