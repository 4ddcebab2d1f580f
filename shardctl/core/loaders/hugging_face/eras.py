"""What changed the streaming order of `datasets` from one version to another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Era:
    """The versions of `datasets` from `since` on that hand out one order.

    says: what the streaming order is like, in a sentence for people.
    epochs_add_up: `set_epoch` shuffles the shuffled shards once more, those of a dataset that
        nothing shuffles too; before, it changed the seed of the shuffle.
    worker_seeds: of the shuffle buffers in worker processes: all the same, from the state of the
        generator, or drawn from it.
    interleave: up to `max_buffer_input_shards` shards fill the buffer in turn, never, made so by
        `shuffle` for all processes together, or by each process for the shards it reads.
    by_halves: the buffer hands out half of what it holds, not one example for one.
    has_strategy: `split_dataset_by_node` takes a strategy.
    strides_tables: hosts that share examples of tables count them from each table anew.
    """

    since: str
    says: str
    epochs_add_up: bool = False
    worker_seeds: Literal["same", "state", "drawn"] = "drawn"
    interleave: Literal["never", "together", "apart"] = "never"
    by_halves: bool = False
    has_strategy: bool = False
    strides_tables: bool = False


# Source: datasets/iterable_dataset.py of each version, `IterableDataset.shuffle`,
# `_prepare_ex_iterable_for_iteration`, `shift_ex_examples_rngs`, `BufferShuffledExamplesIterable`.
ERAS: tuple[Era, ...] = (
    Era(
        since="3.0.0",
        says="one shard after the other through a buffer that gives one example for one",
        worker_seeds="same",
    ),
    Era(
        since="4.4.0",
        says="as before, and each worker process shuffles with a seed of its own",
        worker_seeds="state",
    ),
    Era(
        since="4.6.0",
        says="as before, with other seeds of workers, and set_epoch shuffles the shards anew",
        epochs_add_up=True,
    ),
    Era(
        since="4.8.0",
        says="as before; hosts that share the examples of tables get none but the first",
        epochs_add_up=True,
        strides_tables=True,
    ),
    Era(
        since="4.8.3",
        says="as in 4.6, one shard after the other through a buffer that gives one for one",
        epochs_add_up=True,
    ),
    Era(
        since="5.0.0",
        says="up to 10 shards in turn through a buffer that gives one example for one",
        epochs_add_up=True,
        interleave="together",
    ),
    Era(
        since="5.1.0",
        says="up to 10 shards in turn through a buffer that hands out half of what it holds",
        epochs_add_up=True,
        interleave="apart",
        by_halves=True,
        has_strategy=True,
    ),
)


def era_of(version: str) -> Era:
    """Return the era of a version of `datasets`; that of the oldest for what is older still.

    >>> era_of("4.8.5").since, era_of("5.2").since
    ('4.8.3', '5.1.0')
    """
    number = _number(version)
    return next((era for era in reversed(ERAS) if number >= _number(era.since)), ERAS[0])


def _number(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with; a pre-release counts as its release."""
    begin = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in begin[0].split(".")] if begin else []
    return tuple(parts + [0] * (3 - len(parts)))
