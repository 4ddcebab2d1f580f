"""Random chains of stages, and what the real TensorFlow and Keras make of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from shardctl.core.shuffle.passes import Loop
from shardctl.core.stages.stages import (
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
    Stage,
    Take,
    Unbatch,
    Values,
    WithOptions,
)

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
    for stage in pipeline.stages:
        dataset = _behind(dataset, stage)
    return dataset


def _behind(dataset: Any, stage: Stage) -> Any:
    import tensorflow as tf

    def calls(count: object) -> object:
        return tf.data.AUTOTUNE if count == "auto" else count

    match stage:
        case Shuffle():
            assert not isinstance(stage.seed, tuple)
            return dataset.shuffle(stage.buffer, stage.seed, stage.reshuffle)
        case Repeat():
            return dataset.repeat(stage.count)
        case Batch():
            return dataset.batch(stage.size, drop_remainder=stage.drop_remainder)
        case Unbatch():
            return dataset.unbatch()
        case Shard():
            return dataset.shard(stage.num_shards, stage.index)
        case Take():
            return dataset.take(stage.count)
        case Skip():
            return dataset.skip(stage.count)
        case Cache():
            return dataset.cache()
        case Map():
            return dataset.map(
                lambda x: x + 0,
                num_parallel_calls=calls(stage.calls),
                deterministic=stage.deterministic if stage.calls is not None else None,
            )
        case Prefetch():
            return dataset.prefetch(calls(stage.size))
        case Concatenate():
            return dataset.concatenate(real_dataset(stage.other))
        case WithOptions():
            return dataset.with_options(_options(stage))
    raise AssertionError(stage)


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
    from keras.src.backend.tensorflow.trainer import TFEpochIterator
    import tensorflow as tf

    epochs = TFEpochIterator(
        x=dataset, distribute_strategy=tf.distribute.get_strategy(), steps_per_execution=1
    )
    passes: list[Pass] = []
    for _ in range(num_passes):
        passes.append([])
        with epochs.catch_stop_iteration():
            for _, _, iterator in epochs:
                passes[-1].append(_examples(next(iterator)))
        epochs.reset()
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
    batches, is_endless = 0, False
    for _ in range(rng.randint(1, depth)):
        stage = _random_stage(rng, depth, has_batches=batches > 0, is_endless=is_endless)
        batches += isinstance(stage, Batch) - isinstance(stage, Unbatch)
        if isinstance(stage, Repeat) and (stage.count is None or stage.count < 0):
            is_endless = True
        if isinstance(stage, Take) and stage.count >= 0:
            is_endless = False
        stages.append(stage)
        if is_endless and rng.random() < 0.5:
            stages.append(Take(count=rng.randrange(60)))
            is_endless = False
    if is_endless:
        stages.append(Take(count=rng.randrange(60)))
    return Pipeline(source=source, stages=tuple(stages))


def _random_stage(rng: random.Random, depth: int, *, has_batches: bool, is_endless: bool) -> Stage:
    kinds = ["shuffle"] * 4 + ["repeat"] * 3 + ["take", "skip", "shard", "batch", "cache"]
    kinds += ["map", "prefetch", "options", "batch"]
    if has_batches:
        kinds += ["unbatch"] * 4
    elif depth > 3:
        kinds.append("concatenate")
    match rng.choice(kinds):
        case "shuffle":
            buffers = [1, 2, 3, 5, 10, 40, 100]
            if not is_endless:
                buffers += [-2]
            return Shuffle(
                buffer=rng.choice(buffers),
                seed=rng.choice([None, 0, 1, 7, -1, 2**31 - 1, rng.randrange(2**40)]),
                reshuffle=rng.choice([None, True, True, False]),
            )
        case "repeat":
            return Repeat(count=rng.choice([None, -1, 0, 1, 1, 2, 2, 2, 3, 3, 5]))
        case "take":
            return Take(count=rng.choice([-1, 0, rng.randrange(40), rng.randrange(40)]))
        case "skip":
            return Skip(count=rng.choice([-1, -5, 0, rng.randrange(20), rng.randrange(20)]))
        case "shard":
            num_shards = rng.randint(1, 4)
            return Shard(num_shards=num_shards, index=rng.randrange(num_shards))
        case "batch":
            return Batch(size=rng.randint(1, 5), drop_remainder=rng.random() < 0.4)
        case "unbatch":
            return Unbatch()
        case "cache":
            return Map(calls=None) if is_endless else Cache()
        case "map":
            return Map(calls=rng.choice([None, None, 1, 2, "auto"]))
        case "prefetch":
            return Prefetch(size=rng.choice([0, 1, 2, "auto"]))
        case "concatenate":
            return Concatenate(other=replace(random_chain(rng, depth=3), source=Range(stop=5)))
        case _:
            return WithOptions(
                deterministic=rng.choice([None, True]),
                fusion=rng.choice([None, None, None, True, False]),
                optimizations=rng.choice([None, None, None, True, False]),
                warm_start=rng.choice([None, None, None, False, True]),
            )


def written(pipeline: Pipeline) -> str:
    """Return Python that makes the pipeline: what reproduces a failure."""
    return repr(pipeline)


def random_chains(rng: random.Random, count: int) -> Iterator[Pipeline]:
    """Yield so many chains."""
    return (random_chain(rng) for _ in range(count))
