"""torchdata's StatefulDataLoader, whose sampler keeps one generator for all epochs.

Sources: torchdata/stateful_dataloader/sampler.py (RandomSampler is seeded when the loader is made,
and an iterator of it permutes when it is made), torch/utils/data/dataloader.py and
torchdata/stateful_dataloader/stateful_dataloader.py (an iterator of the loader makes one of the
sampler, and another in `_reset`, which is called where there are workers; workers that stay are
started once, and their epochs begin with `_reset` alone). What a state restores is
the generator before the permutation in use, so epochs after a resume are those of a run that was
not interrupted. Before
torchdata 0.11.0 the seed was 1 whatever `manual_seed` was given, and workers changed nothing.
"""

from __future__ import annotations

from shardctl.base.phrase import refused
from shardctl.loaders import torch as samplers
from shardctl.loaders.loader import is_before
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.loader_sequence import Deal, LoaderSequence

SEEDED_FROM = "0.11.0"  # before, `manual_seed` meant nothing to it


def handed_out(asked: LoaderConfig) -> LoaderSequence:
    """Return what one process of a StatefulDataLoader hands out."""
    if asked.shares:
        return samplers.distributed(asked)
    if not asked.shuffles:
        return samplers.single(asked)
    samplers.check_any(asked)
    n, sampler, own = asked.num_examples, _generator(asked), asked.seed is not None
    permutation = samplers.num_draws(n)
    first, an_epoch = 0, permutation
    if is_before(asked.version, SEEDED_FROM):
        an_epoch *= 2  # that of `RandomSampler` of torch, which draws another at its end
    elif asked.workers:
        first = permutation
        if not asked.persistent_workers:
            an_epoch *= 2
    if own:  # `_base_seed` is drawn from it, too, after the first permutation of an iterator
        first += samplers.BASE_SEED if asked.workers else 0
        an_epoch += samplers.base_seeds(asked)
    found = samplers.dealt(
        asked,
        Deal(size=asked.whole_batches(n)),
        lambda epoch: sampler.randperm(n, first + (asked.first_epoch + epoch) * an_epoch),
    )
    found.assumptions = samplers.workers_end(asked)
    return found


def _generator(asked: LoaderConfig) -> samplers.Generator:
    """Return the generator of the loader's sampler."""
    samplers.one_seed(asked)
    before = is_before(asked.version, SEEDED_FROM)
    if before and (asked.seed is not None or asked.persistent_workers):
        raise refused(
            "{shuffle_seed} of the loader's own generator and {persistent_workers=True} are "
            "proven from torchdata {} on, not of {}; give {global_seed=N} alone",
            SEEDED_FROM,
            asked.version,
        )
    if asked.seed is not None:
        return samplers.Generator(
            samplers.check_seed(asked.seed, "the seed of the loader's generator")
        )
    seed = samplers.check_seed(asked.global_seed or 0, "the global seed")
    return samplers.Generator(1 if before else samplers.Generator(seed).int64(0))
