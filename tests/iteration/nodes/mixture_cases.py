"""Random combinations of datasets, as stages and as the same calls of tf.data."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from shardctl.stages.part import Source, Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Map,
    Pipeline,
    Range,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shared,
    Shuffle,
    Skip,
    Take,
    Values,
    Zip,
)

FILTER = Filter(kept="kept.txt")


def passes(codes: Any) -> Any:
    """Stand for the predicate of a filter and for the list of what it keeps."""
    return codes % 3 != 1


class Drawing:
    """Draws pipelines; each source has numbers of its own, so that what comes says where from.

    shared: pipelines that are one dataset object wherever they are drawn again.
    """

    def __init__(self, rng: random.Random, *, sharing: bool = False, filters: bool = False) -> None:
        self.rng, self.sharing, self.filters = rng, sharing, filters
        self._next = 0
        self._shared: list[Shared] = []

    def pipeline(self, depth: int = 2) -> Pipeline:
        """Return a combination with stages behind it, and an end."""
        rng = self.rng
        source, is_endless, is_tuple = self.combination(depth)
        stages: list[Stage] = []
        if is_endless:
            stages.append(Take(count=rng.choice([1, rng.randrange(150), rng.randrange(150)])))
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            some: list[Stage] = [
                self.shuffle(),
                Repeat(count=rng.randrange(1, 4)),
                Cache(),
                Map(),
                Take(count=rng.randrange(1, 100)),
            ]
            stages.append(rng.choice(some))
        if not is_tuple and rng.random() < 0.4:
            stages.append(Batch(size=rng.randrange(1, 9), drop_remainder=rng.random() < 0.4))
        return Pipeline(source=source, stages=tuple(stages))

    def combination(self, depth: int) -> tuple[Source, bool, bool]:
        """Return a combination, whether it may be endless, and whether its elements are tuples."""
        rng = self.rng
        kind = rng.choice(["sample", "sample", "choose", "zip"] if depth > 1 else ["sample"])
        number = rng.choice([1, 2, 2, 3, 3, 4, 8]) if depth > 1 else 2
        inputs = tuple(self.input(depth) for _ in range(number))
        endless = [any(s == Repeat() for s in one.stages) for one in inputs]
        stop = rng.random() < 0.5
        if kind == "zip":
            return Zip(inputs=inputs), all(endless), True
        if kind == "choose":
            choices = self.choices(number)
            source: Source = ChooseFromDatasets(inputs=inputs, choices=choices, stop_on_empty=stop)
            return source, any(s == Repeat() for s in choices.stages), False
        source = SampleFromDatasets(
            inputs=inputs,
            weights=self.weights(number),
            seed=self.seed(),
            stop_on_empty=stop,
            rerandomize=rng.choice([None, None, True, False]),
            weights_dtype=rng.choice(["float32", "float32", "float64"]),
        )
        return source, any(endless) or depth > 1, False

    def weights(self, number: int) -> tuple[float, ...] | None:
        rng = self.rng
        kind = rng.randrange(5)
        if kind == 0:
            return None
        weights = [rng.choice([1 / 3, 0.1, 1.0, 5 * rng.random() + 0.05]) for _ in range(number)]
        if kind == 1:
            weights[rng.randrange(number)] = 0.0
        if kind == 2:
            weights = [weight / sum(weights) for weight in weights]
        return tuple(weights) if any(weights) else None

    def choices(self, number: int) -> Pipeline:
        rng = self.rng
        if rng.random() < 0.5:
            source: Source = Range(stop=number)
        else:
            # Each input is among them, else an endless one may be looked for in vain.
            values = [*range(number), *(rng.randrange(number) for _ in range(rng.randrange(9)))]
            rng.shuffle(values)
            source = Values(values=tuple(values))
        stages: list[Stage] = []
        if rng.random() < 0.4:
            stages.append(Shuffle(buffer=rng.randrange(1, 9), seed=rng.randrange(50)))
            if rng.random() < 0.5:
                stages.append(Map())
        stages.append(Repeat(count=rng.choice([None, 1, 3, 20])))
        return Pipeline(source=source, stages=tuple(stages))

    def input(self, depth: int) -> Pipeline:
        """Return an input: numbers of its own, a smaller mixture, or an object used before."""
        rng = self.rng
        if self.sharing and rng.random() < 0.6:
            return self.shared()
        if depth > 1 and rng.random() < 0.15:
            source, is_endless, _ = self.combination(depth - 1)
            stages: tuple[Stage, ...] = (Take(count=rng.randrange(1, 40)),) if is_endless else ()
            return Pipeline(source=source, stages=stages)
        return Pipeline(source=self.numbers(), stages=self.stages())

    def shared(self) -> Pipeline:
        rng = self.rng
        if not self._shared or rng.random() < 0.4:
            pipeline = Pipeline(source=self.numbers(), stages=self.stages())
            self._shared.append(Shared(label=f"d{len(self._shared)}", pipeline=pipeline))
        more: list[tuple[Stage, ...]] = [
            (),
            (),
            (Repeat(count=2),),
            (Map(),),
            (Take(count=7),),
            (self.shuffle(),),
        ]
        one = rng.choice(self._shared)
        if rng.random() < 0.15 and not any(s == Repeat() for s in one.pipeline.stages):
            return Pipeline(source=one, stages=(Concatenate(other=Pipeline(source=one)),))
        return Pipeline(source=one, stages=rng.choice(more))

    def numbers(self) -> Values:
        count = self.rng.choice([self.rng.randrange(2), *[self.rng.randrange(1, 61)] * 5])
        first, self._next = self._next, self._next + count
        return Values(values=tuple(range(first, first + count)))

    def stages(self) -> tuple[Stage, ...]:
        rng = self.rng
        stages: list[Stage] = []
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            some: list[Stage] = [
                self.shuffle(),
                self.shuffle(),
                Repeat(count=rng.choice([2, 3])),
                Repeat(),
                Cache(),
                Map(),
                Take(count=rng.randrange(1, 30)),
                Skip(count=rng.randrange(5)),
                Shard(num_shards=2, index=rng.randrange(2)),
            ]
            stage = rng.choice([*some, *[FILTER] * (2 * self.filters)])
            endless = any(one == Repeat() for one in stages)
            # Where a filter lets nothing pass TensorFlow looks for it for ever.
            if endless and isinstance(stage, Repeat | Cache | Filter):
                continue
            stages.append(stage)
        return tuple(stages)

    def shuffle(self) -> Shuffle:
        rng = self.rng
        return Shuffle(
            buffer=rng.choice([1, 3, 10, 100]),
            seed=self.seed(),
            reshuffle=rng.choice([None, None, True, False]),
        )

    def seed(self) -> int:
        return self.rng.choice([0, 1, 42, -3, self.rng.randrange(2**31), 2**31 - 1])


def real_dataset(pipeline: Pipeline, shared: dict[str, Any] | None = None) -> Any:
    """Return the tf.data.Dataset of a pipeline."""
    shared = {} if shared is None else shared
    dataset = _real_source(pipeline.source, shared)
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            dataset = dataset.concatenate(real_dataset(stage.other, shared))
        else:
            dataset = _STAGES[type(stage)](dataset, stage)
    return dataset


def _real_source(source: Source, shared: dict[str, Any]) -> Any:
    import numpy as np
    import tensorflow as tf

    dataset = tf.data.Dataset
    match source:
        case Range():
            return dataset.range(source.stop)
        case Values():
            return dataset.from_tensor_slices(np.array(source.values, np.int64))
        case Shared():
            if source.label not in shared:
                shared[source.label] = real_dataset(source.pipeline, shared)
            return shared[source.label]
        case Zip():
            return dataset.zip(tuple(real_dataset(one, shared) for one in source.inputs))
        case SampleFromDatasets():
            weights: Any = source.weights
            if weights is not None and source.weights_dtype == "float64":
                weights = np.array(weights)
            return dataset.sample_from_datasets(
                [real_dataset(one, shared) for one in source.inputs],
                weights,
                source.seed,
                stop_on_empty_dataset=source.stop_on_empty,
                rerandomize_each_iteration=source.rerandomize,
            )
        case ChooseFromDatasets():
            return dataset.choose_from_datasets(
                [real_dataset(one, shared) for one in source.inputs],
                real_dataset(source.choices, shared),
                stop_on_empty_dataset=source.stop_on_empty,
            )
    raise AssertionError(source)


_STAGES: dict[type, Callable[[Any, Any], Any]] = {
    Shuffle: lambda ds, stage: ds.shuffle(
        stage.buffer, stage.seed, reshuffle_each_iteration=stage.reshuffle
    ),
    Repeat: lambda ds, stage: ds.repeat(stage.count),
    Batch: lambda ds, stage: ds.batch(stage.size, drop_remainder=stage.drop_remainder),
    Cache: lambda ds, stage: ds.cache(),
    Map: lambda ds, stage: ds.map(lambda *parts: _changed(parts)),
    Take: lambda ds, stage: ds.take(stage.count),
    Skip: lambda ds, stage: ds.skip(stage.count),
    Shard: lambda ds, stage: ds.shard(stage.num_shards, stage.index),
    Filter: lambda ds, stage: ds.filter(passes),
}


def _changed(parts: Any) -> Any:
    """Return what a map makes of an element: a map of an element to itself would be removed."""
    import tensorflow as tf

    made = tf.nest.map_structure(lambda part: part + 0, parts)
    return made[0] if len(made) == 1 else made


def real_passes(dataset: Any, count: int) -> list[list[list[int]]]:
    """Return the elements of passes, each as the list of its numbers, in the order of `zip`."""
    import numpy as np
    import tensorflow as tf

    return [
        [
            np.concatenate([np.ravel(part) for part in tf.nest.flatten(element)]).tolist()
            for element in dataset.as_numpy_iterator()
        ]
        for _ in range(count)
    ]
