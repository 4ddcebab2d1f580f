"""One operation -> the stages that it is."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Filter,
    Map,
    Opaque,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    WithOptions,
)
from shardctl.tfds.recognizing.graph import Options, operation_of
from shardctl.tfds.recognizing.stage_of import stages_of_operation

KNOWN: dict[str, tuple[Any, tuple[Stage, ...]]] = {
    "shuffle": (
        lambda ds: ds.shuffle(3, seed=7),
        (Shuffle(buffer=3, seed=(87654321, 7), reshuffle=None),),
    ),
    "repeat": (lambda ds: ds.repeat(3), (Repeat(count=3),)),
    "repeat for ever": (lambda ds: ds.repeat(), (Repeat(),)),
    "batch": (lambda ds: ds.batch(3, True), (Batch(size=3, drop_remainder=True),)),
    "padded batch": (lambda ds: ds.padded_batch(3), (Batch(size=3),)),
    "parallel batch": (
        lambda ds: ds.batch(3, num_parallel_calls=2, deterministic=True),
        (Batch(size=3), Map(calls=2, deterministic=True)),
    ),
    "unbatch": (lambda ds: ds.batch(3).shuffle(2).unbatch(), (Unbatch(),)),
    "unbatch of batches, joined": (
        lambda ds: ds.batch(3).concatenate(ds.batch(2)).shuffle(4).unbatch(),
        (Unbatch(),),
    ),
    "unbatch of a mixture of batches": (
        lambda ds: ds.choose_from_datasets([ds.batch(3), ds.batch(2)], ds.range(2)).unbatch(),
        (Unbatch(),),
    ),
    "unbatch of a batch of batches, twice": (
        lambda ds: ds.batch(2).cache().batch(3).unbatch().skip(1).unbatch(),
        (Unbatch(),),
    ),
    "unbatch behind a map to itself": (
        lambda ds: ds.batch(3).map(lambda rows: rows, num_parallel_calls=2).unbatch(),
        (Unbatch(),),
    ),
    "unbatch behind a map of whole batches": (
        lambda ds: ds.batch(3, True).map(lambda rows: (rows, rows * 2)).unbatch(),
        (Unbatch(),),
    ),
    "rebatch": (lambda ds: ds.batch(3).rebatch(2), (Unbatch(), Batch(size=2))),
    "shard": (lambda ds: ds.shard(3, 1), (Shard(num_shards=3, index=1),)),
    "take": (lambda ds: ds.take(-5), (Take(count=-1),)),
    "skip": (lambda ds: ds.skip(5), (Skip(count=5),)),
    "cache": (lambda ds: ds.cache(), (Cache(),)),
    "map": (lambda ds: ds.map(lambda n: n + 1), (Map(),)),
    "parallel map": (
        lambda ds: ds.map(lambda n: n + 1, num_parallel_calls=-1, deterministic=False),
        (Map(calls="auto", deterministic=False),),
    ),
    "prefetch": (lambda ds: ds.prefetch(-1), (Prefetch(size="auto"),)),
    "filter": (lambda ds: ds.filter(lambda n: n > 1), (Filter(),)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_stages(name: str) -> None:
    import tensorflow as tf

    make, stages = KNOWN[name]
    assert stages_of_operation(operation_of(make(tf.data.Dataset.range(9))), Options()) == stages


def test_options_that_are_in_force() -> None:
    import tensorflow as tf

    options = tf.data.Options()
    options.deterministic = False
    operation = operation_of(tf.data.Dataset.range(3).with_options(options))
    assert stages_of_operation(operation, Options(deterministic=False)) == (
        WithOptions(deterministic=False),
    )
    assert stages_of_operation(operation, Options(deterministic=True)) == (WithOptions(),)


def test_a_cache_in_a_file_and_what_nobody_knows_are_opaque() -> None:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(3)
    (cached,) = stages_of_operation(operation_of(numbers.cache("/nowhere/cache")), Options())
    assert isinstance(cached, Opaque)
    assert cached.call == "cache(filename)"
    (sparse,) = stages_of_operation(operation_of(numbers.sparse_batch(2, [1])), Options())
    assert sparse == Opaque(
        call="DenseToSparseBatch",
        reason="DenseToSparseBatchDataset is no stage that shardctl knows",
    )


def test_what_unbatch_takes_apart_that_is_no_batch_is_opaque() -> None:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(6)
    pairs = numbers.map(lambda n: tf.stack([n, n]))
    for taken in (
        pairs,
        pairs.batch(2).map(lambda rows: rows[:, 0]),
        pairs.batch(2, True).map(lambda rows: rows[:1]),
        pairs.batch(2, True).map(lambda rows: tf.reshape(rows, [-1])),
        pairs.batch(2, True).map(lambda rows: tf.reshape(rows, [2, 2])).unbatch(),
        numbers.batch(2, True).map(lambda rows: rows[: rows[0]]),
        pairs.batch(2).unbatch(),
        numbers.batch(2).concatenate(pairs),
        tf.data.Dataset.sample_from_datasets([pairs, numbers.batch(2)], seed=1),
    ):
        (unbatched,) = stages_of_operation(operation_of(taken.unbatch()), Options())
        assert isinstance(unbatched, Opaque)
        assert unbatched.call == "unbatch"
