"""torchdata's StatefulDataLoader, whose sampler keeps one generator for all epochs.

Sources: torchdata/stateful_dataloader/sampler.py (RandomSampler is seeded when the loader is made,
and an iterator of it permutes when it is made), torch/utils/data/dataloader.py and
torchdata/stateful_dataloader/stateful_dataloader.py (an iterator of the loader makes one of the
sampler, and another in `_reset`, which is called where there are workers). What a state restores is
the generator before the permutation in use, so epochs after a resume are those of a run that was
not interrupted. Before
torchdata 0.11.0 the seed was 1 whatever `manual_seed` was given, and workers changed nothing.
"""

from __future__ import annotations

from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import HandedOut
from shardctl.core.loaders.torch.dealt import Deal
from shardctl.core.loaders.torch.generator import Generator, check_seed, num_draws
from shardctl.core.loaders.torch.samplers import (
    check_any,
    dealt,
    distributed,
    one_seed,
    shuffles,
    single,
    whole_batches,
)
from shardctl.core.loaders.versions import release_of
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

SEEDED_FROM = "0.11.0"  # before, `manual_seed` meant nothing to it


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of a StatefulDataLoader hands out."""
    if asked.shares:
        return distributed(asked)
    if not shuffles(asked):
        return single(asked)
    check_any(asked)
    n, sampler = asked.num_examples, _generator(asked)
    # Of how many permutations an epoch reads which.
    if _is_before(asked.version, SEEDED_FROM):
        drawn, read = 2, 0  # that of `RandomSampler` of torch, which draws another at its end
    else:
        drawn, read = (2, 1) if asked.workers else (1, 0)
    return dealt(
        asked,
        Deal(size=whole_batches(asked, n)),
        lambda epoch: sampler.randperm(
            n, ((asked.first_epoch + epoch) * drawn + read) * num_draws(n)
        ),
    )


def _generator(asked: Asked) -> Generator:
    """Return the generator of the loader's sampler."""
    one_seed(asked)
    if asked.global_seed is None:
        raise UsageError(
            phrase(
                "{shuffle_seed} without {host=I/N} is a generator that a StatefulDataLoader and "
                "its sampler draw from in turn: after a resume it goes on with other draws, so the "
                "epochs that follow differ; give {global_seed=N} and call torch.manual_seed(N)"
            )
        )
    seed = check_seed(asked.global_seed, "the global seed")
    if _is_before(asked.version, SEEDED_FROM):
        return Generator(1)
    return Generator(Generator(seed).int64(0))


def _is_before(version: str, other: str) -> bool:
    released, border = release_of(version), release_of(other)
    return released is not None and border is not None and released < border
