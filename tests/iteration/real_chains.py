"""Random chains of stages, and what the real TensorFlow and Keras make of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from shardctl.errors import UsageError
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Concatenate,
    Map,
    Pipeline,
    Prefetch,
    Range,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    Values,
    WithOptions,
)
from shardctl.tfdata.shuffle_seeds import Loop

Pass = list[list[int]]  # the examples of each element


def real_dataset(pipeline: Pipeline) -> Any:
    """Return the `tf.data.Dataset` that a script with these stages makes."""
    import tensorflow as tf

    if isinstance(pipeline.source, Range):
        dataset = tf.data.Dataset.range(pipeline.source.stop)
    else:
        assert isinstance(pipeline.source, Values)
        values = np.array(pipeline.source.values, np.int64)
        dataset = tf.data.Dataset.from_tensor_slices(values)
    return behind(dataset, pipeline.stages)


def behind(dataset: Any, stages: tuple[Stage, ...]) -> Any:
    """Return a dataset with stages behind it."""
    for stage in stages:
        dataset = _CALLS[stage.name](dataset, stage)
    return dataset


def _calls(count: object) -> object:
    import tensorflow as tf

    return tf.data.AUTOTUNE if count == "auto" else count


def _mapped(dataset: Any, stage: Map) -> Any:
    # Without num_parallel_calls tf.data warns of a `deterministic` and forgets it.
    deterministic = stage.deterministic if stage.calls is not None else None
    return dataset.map(
        lambda x: x + 0, num_parallel_calls=_calls(stage.calls), deterministic=deterministic
    )


_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "shuffle": lambda dataset, it: dataset.shuffle(it.buffer, it.seed, it.reshuffle),
    "repeat": lambda dataset, it: dataset.repeat(it.count),
    "batch": lambda dataset, it: dataset.batch(it.size, drop_remainder=it.drop_remainder),
    "unbatch": lambda dataset, it: dataset.unbatch(),
    "shard": lambda dataset, it: dataset.shard(it.num_shards, it.index),
    "take": lambda dataset, it: dataset.take(it.count),
    "skip": lambda dataset, it: dataset.skip(it.count),
    "cache": lambda dataset, it: dataset.cache(),
    "map": _mapped,
    "prefetch": lambda dataset, it: dataset.prefetch(_calls(it.size)),
    "concatenate": lambda dataset, it: dataset.concatenate(real_dataset(it.other)),
    "with_options": lambda dataset, it: dataset.with_options(_options(it)),
}


def _options(stage: WithOptions) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    rewriting = options.experimental_optimization
    if stage.deterministic is not None:
        options.deterministic = stage.deterministic
    if stage.fusion is not None:
        rewriting.shuffle_and_repeat_fusion = stage.fusion
    if stage.optimizations is not None:
        rewriting.apply_default_optimizations = stage.optimizations
    if stage.warm_start is not None:
        options.experimental_warm_start = stage.warm_start
    return options


def set_seed(seed: int | None) -> None:
    """Set the global seed, or none, as it is when a script begins."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    tf.random.set_seed(0 if seed is None else seed)
    if seed is None:
        context.context()._seed = None


def real_passes(dataset: Any, num_passes: int, loop: Loop) -> list[Pass]:
    """Return what each pass hands out, in a Python loop or in the loop of Keras' `fit`."""
    if loop == "python":
        return [[_examples(element) for element in dataset] for _ in range(num_passes)]
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import TFEpochIterator

    epochs = TFEpochIterator(
        x=dataset, distribute_strategy=tf.distribute.get_strategy(), steps_per_execution=1
    )
    epochs.reset()  # as `fit` does, once
    passes: list[Pass] = []
    for _ in range(num_passes):
        passes.append([])
        with epochs.catch_stop_iteration():
            for _, _, iterator in epochs:
                passes[-1].append(_examples(next(iterator)))
    return passes


def _examples(element: Any) -> list[int]:
    return list(map(int, np.asarray(element).ravel().tolist()))


def random_chain(rng: random.Random, *, depth: int = 8) -> Pipeline:
    """Return a chain of up to `depth` stages over a small source, one that ends."""
    length = rng.choice([0, 1, 2, 3, *range(4, 31)])
    source: Range | Values = Range(stop=length)
    if rng.random() < 0.1:
        source = Values(values=tuple(rng.randrange(10) for _ in range(length)))
    stages: list[Stage] = []
    for _ in range(rng.randint(1, depth)):
        batches = sum(isinstance(one, Batch) - isinstance(one, Unbatch) for one in stages)
        stage = _random_stage(rng, depth, has_batches=batches > 0, is_endless=_is_endless(stages))
        stages.append(stage)
        if _is_endless(stages) and rng.random() < 0.5:
            stages.append(Take(count=rng.randrange(60)))
    if _is_endless(stages):
        stages.append(Take(count=rng.randrange(60)))
    try:
        return Pipeline(source=source, stages=tuple(stages))
    except UsageError:  # there are rules about stages together
        return random_chain(rng, depth=depth)


def _is_endless(stages: list[Stage]) -> bool:
    endless = False
    for stage in stages:
        if isinstance(stage, Repeat) and stage.count is None:
            endless = True
        elif isinstance(stage, Take) and stage.count >= 0:
            endless = False
    return endless


def _random_stage(rng: random.Random, depth: int, *, has_batches: bool, is_endless: bool) -> Stage:
    weights: dict[Callable[[random.Random], Stage], int] = {
        _shuffle: 4,
        _repeat: 3,
        _take: 1,
        _skip: 1,
        _shard: 1,
        _batch: 2,
        _cache: 0 if is_endless else 1,
        _map: 1,
        _prefetch: 1,
        _with_options: 1,
        _unbatch: 4 if has_batches else 0,
        _concatenate: 1 if depth > 3 and not has_batches else 0,
    }
    [make] = rng.choices(list(weights), list(weights.values()))
    stage: Stage = make(rng)
    if is_endless and isinstance(stage, Shuffle) and stage.buffer == -2:
        return replace(stage, buffer=7)
    return stage


def _shuffle(rng: random.Random) -> Shuffle:
    return Shuffle(
        buffer=rng.choice([1, 2, 3, 5, 10, 40, 100, -2]),
        seed=rng.choice([None, 0, 1, 7, -1, 2**31 - 1, rng.randrange(2**40)]),
        reshuffle=rng.choice([None, True, True, False]),
    )


def _repeat(rng: random.Random) -> Repeat:
    return Repeat(count=rng.choice([None, None, 1, 1, 2, 2, 2, 3, 3, 5]))


def _take(rng: random.Random) -> Take:
    return Take(count=rng.choice([-1, 0, rng.randrange(40), rng.randrange(40)]))


def _skip(rng: random.Random) -> Skip:
    return Skip(count=rng.choice([-1, 0, rng.randrange(20), rng.randrange(20)]))


def _shard(rng: random.Random) -> Shard:
    num_shards = rng.randint(1, 4)
    return Shard(num_shards=num_shards, index=rng.randrange(num_shards))


def _batch(rng: random.Random) -> Batch:
    return Batch(size=rng.randint(1, 5), drop_remainder=rng.random() < 0.4)


def _unbatch(rng: random.Random) -> Unbatch:
    return Unbatch()


def _cache(rng: random.Random) -> Cache:
    return Cache()


def _map(rng: random.Random) -> Map:
    return Map(calls=rng.choice([None, None, 1, 2, "auto"]))


def _prefetch(rng: random.Random) -> Prefetch:
    return Prefetch(size=rng.choice([0, 1, 2, "auto"]))


def _concatenate(rng: random.Random) -> Concatenate:
    other = random_chain(rng, depth=3)
    stages = tuple(one for one in other.stages if not isinstance(one, Batch | Unbatch))
    return Concatenate(other=replace(other, stages=stages))


def _with_options(rng: random.Random) -> WithOptions:
    return WithOptions(
        deterministic=rng.choice([None, True]),
        fusion=rng.choice([None, None, None, True, False]),
        optimizations=rng.choice([None, None, None, True, False]),
        warm_start=rng.choice([None, None, None, False, True]),
    )


def seeded(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with a seed for each shuffle that has none."""
    return replace(pipeline, stages=tuple(map(_seeded, pipeline.stages)))


def _seeded(stage: Stage) -> Stage:
    if isinstance(stage, Concatenate):
        return Concatenate(other=seeded(stage.other))
    if isinstance(stage, Shuffle) and stage.seed is None:
        return replace(stage, seed=5)
    return stage
