"""torchdata's StatefulDataLoader, whose sampler keeps one generator for all epochs.

Sources: torchdata/stateful_dataloader/sampler.py (RandomSampler is seeded when the loader is made,
and an iterator of it permutes when it is made), torch/utils/data/dataloader.py and
torchdata/stateful_dataloader/stateful_dataloader.py (an iterator of the loader makes one of the
sampler, and another in `_reset`, which is called where there are workers). What a state restores is
the generator before the permutation in use, so epochs after a resume are those of a run that was
not interrupted.
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
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError


def handed_out(asked: Asked) -> HandedOut:
    """Return what one process of a StatefulDataLoader hands out."""
    if asked.shares:
        return distributed(asked)
    if not shuffles(asked):
        return single(asked)
    check_any(asked)
    one_seed(asked)
    if asked.global_seed is None:
        raise UsageError(
            phrase(
                "{shuffle_seed} without {host=I/N} is a generator that a StatefulDataLoader and "
                "its sampler draw from in turn: after a resume it goes on with other draws, so the "
                "epochs that follow differ; give {global_seed=N} and call torch.manual_seed(N)"
            )
        )
    n, default = asked.num_examples, Generator(check_seed(asked.global_seed, "the global seed"))
    sampler = Generator(default.int64(0))
    first = asked.first_epoch

    def permutation_of(epoch: int) -> int:
        return 2 * epoch + 1 if asked.workers else epoch

    return dealt(
        asked,
        Deal(size=whole_batches(asked, n)),
        lambda epoch: sampler.randperm(n, permutation_of(first + epoch) * num_draws(n)),
    )
