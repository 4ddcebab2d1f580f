"""Hugging Face Accelerate, with and without a Trainer: a permutation whose batches are dealt.

Sources: accelerate/data_loader.py (SeedableRandomSampler, BatchSamplerShard, prepare_data_loader)
with `even_batches` and without `split_batches`. A seed of the shuffle is the Trainer's, which sets
`use_seedable_sampler`; `torch.manual_seed` is what the order comes from without it, which is the
default of `Accelerator()`.
"""

from __future__ import annotations

from shardctl.base.phrase import refused
from shardctl.loaders import torch as samplers
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.loader_sequence import Deal, LoaderSequence, Permutations

_AS_THE_TRAINER = (
    "use_seedable_sampler=True, as the Trainer sets it; Accelerator() alone has another order, "
    "which --shuffle with --global-seed N is, the seed of set_seed or torch.manual_seed"
)


def handed_out(asked: LoaderConfig) -> LoaderSequence:
    """Return what one process hands out of a DataLoader that Accelerate has prepared."""
    if not asked.shuffles:
        return samplers.dealt(asked, _deal(asked), None)
    samplers.check_any(asked)
    samplers.one_seed(asked, "the data_seed or seed of the Trainer")
    found = samplers.dealt(asked, _deal(asked), _permutations(asked))
    if asked.seed is not None:
        found.assumptions = (_AS_THE_TRAINER,)
    elif asked.num_hosts == 1:
        found.assumptions = samplers.workers_end(asked)
    return found


def _permutations(asked: LoaderConfig) -> Permutations:
    """Return those of its seedable sampler, as the Trainer sets it, or of torch's RandomSampler.

    `prepare_data_loader` gives the RandomSampler of several processes a generator, seeded by the
    first draw; a lone process iterates torch's DataLoader as it is.
    """
    if asked.seed is not None:
        return samplers.by_epoch(asked, samplers.check_seed(asked.seed, "the seed"))
    if asked.num_hosts == 1:
        return samplers.randomly(asked)
    n = asked.num_examples
    seed = samplers.Generator(samplers.check_seed(asked.global_seed or 0, "the global seed")).int64(
        0
    )
    own = samplers.Generator(seed)
    # RandomSampler draws another permutation at its end, of which it takes no element.
    return lambda epoch: own.randperm(n, (asked.first_epoch + epoch) * 2 * samplers.num_draws(n))


def _deal(asked: LoaderConfig) -> Deal:
    n, world = asked.num_examples, asked.num_hosts
    if asked.batch is None:  # prepare_data_loader then drops the sampler, too
        raise refused(
            "Accelerate deals whole batches to its processes; give {batch=N} of one process"
        )
    if world == 1:  # prepare_data_loader leaves the batches as they are
        return Deal(size=asked.whole_batches(n))
    a_round = asked.batch * world
    rounds = n // a_round if asked.drop_remainder else -(-n // a_round)
    return Deal(host=asked.host, num_hosts=world, block=asked.batch, size=rounds * asked.batch)
