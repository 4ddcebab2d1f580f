"""A pipeline by TensorFlow itself: each stage is the call that a script would make."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np

from shardctl.stages import stages as ast
from shardctl.stages.part import Source, Stage
from tests.pipelines.random_pipelines import Element

MakeRead = Callable[[Any], Any]


def passes(codes: Any) -> Any:
    """Stand for the predicate of a filter and for the list of what it keeps."""
    return codes % 3 != 1


def real_dataset(
    pipeline: ast.Pipeline, read: MakeRead, variants: random.Random | None = None
) -> Any:
    """Return the tf.data.Dataset of a pipeline, built from its source to its last stage.

    read: returns TFDS's dataset, or what stands for it, and the object of a source that is shared;
        elements of all of them are of one kind.
    variants: where given, things that change no order are put in here and there: a map of an
        element to itself, which TensorFlow removes, a seedless operation between others.
    """
    dataset = _source(pipeline.source, read, variants)
    for stage in pipeline.stages:
        dataset = _staged(dataset, stage, read, variants)
        if variants is not None and variants.random() < 0.1:
            dataset = _map(dataset, lambda part: part)
    return dataset


def _source(source: Source, read: MakeRead, variants: random.Random | None) -> Any:
    import tensorflow as tf

    match source:
        case ast.Read() | ast.Shared():
            return read(source)
        case ast.Range(stop=stop):
            return tf.data.Dataset.range(stop)
        case ast.Values(values=values):
            return tf.data.Dataset.from_tensor_slices(tf.constant(values, tf.int64))
        case ast.Zip(inputs=inputs):
            return tf.data.Dataset.zip(tuple(real_dataset(one, read, variants) for one in inputs))
        case ast.SampleFromDatasets():
            return tf.data.Dataset.sample_from_datasets(
                [real_dataset(one, read, variants) for one in source.inputs],
                weights=_weights(source),
                seed=source.seed,
                stop_on_empty_dataset=source.stop_on_empty,
                rerandomize_each_iteration=source.rerandomize,
            )
        case ast.ChooseFromDatasets():
            return tf.data.Dataset.choose_from_datasets(
                [real_dataset(one, read, variants) for one in source.inputs],
                real_dataset(source.choices, read),
                stop_on_empty_dataset=source.stop_on_empty,
            )
    raise NotImplementedError(source)


def _weights(source: ast.SampleFromDatasets) -> Any:
    if source.weights is not None and source.weights_dtype == "float64":
        return np.array(source.weights)
    return None if source.weights is None else list(source.weights)


def _staged(dataset: Any, stage: Stage, read: MakeRead, variants: random.Random | None) -> Any:
    match stage:
        case ast.Map(calls=calls, deterministic=deterministic):
            return _map(
                dataset, _changed, num_parallel_calls=_number(calls), deterministic=deterministic
            )
        case ast.Window():
            windows = dataset.window(stage.size, stage.shift, stage.stride, stage.drop_remainder)
            return windows.flat_map(lambda *parts: _zipped(*parts).batch(stage.size))
        case ast.Scan():
            return dataset.scan(0, lambda count, *parts: (count + 1, _scanned(*parts)))
        case ast.Prefetch(size=size):
            return dataset.prefetch(_number(size))
        case ast.WithOptions():
            return dataset.with_options(_options(stage))
        case ast.Concatenate(other=other):
            return dataset.concatenate(real_dataset(other, read, variants))
    return _CALLS[type(stage)](dataset, stage)


_CALLS: dict[type[Stage], Callable[[Any, Any], Any]] = {
    ast.Shuffle: lambda ds, call: ds.shuffle(
        call.buffer, seed=call.seed, reshuffle_each_iteration=call.reshuffle
    ),
    ast.Repeat: lambda ds, call: ds.repeat(call.count),
    ast.Batch: lambda ds, call: ds.batch(call.size, drop_remainder=call.drop_remainder),
    ast.Unbatch: lambda ds, call: ds.unbatch(),
    ast.Shard: lambda ds, call: ds.shard(call.num_shards, call.index),
    ast.Take: lambda ds, call: ds.take(call.count),
    ast.Skip: lambda ds, call: ds.skip(call.count),
    ast.Cache: lambda ds, call: ds.cache(),
    ast.Filter: lambda ds, call: ds.filter(passes),
}


def _zipped(*parts: Any) -> Any:
    import tensorflow as tf

    (one,) = parts if len(parts) == 1 else (parts,)
    return one if isinstance(one, tf.data.Dataset) else tf.data.Dataset.zip(one)


def _scanned(part: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(_changed, part)


def _number(value: int | Literal["auto"] | None) -> int | None:
    import tensorflow as tf

    autotune: int = tf.data.AUTOTUNE
    return autotune if value == "auto" else value


def _changed(part: Any) -> Any:
    """Return a tensor as it was, by an operation that TensorFlow does not see through."""
    import tensorflow as tf

    return tf.strings.join([part, ""]) if part.dtype == tf.string else part + 0


def _map(dataset: Any, change: Callable[[Any], Any], **how: Any) -> Any:
    """Map each tensor of the elements; a tuple stays one, also of a single part."""
    import tensorflow as tf

    if isinstance(dataset.element_spec, tuple):
        return dataset.map(lambda *parts: tf.nest.map_structure(change, parts), **how)
    return dataset.map(lambda part: tf.nest.map_structure(change, part), **how)


def _options(stage: ast.WithOptions) -> Any:
    import tensorflow as tf

    options = tf.data.Options()
    if stage.deterministic is not None:
        options.deterministic = stage.deterministic
    if stage.fusion is not None:
        options.experimental_optimization.shuffle_and_repeat_fusion = stage.fusion
    if stage.optimizations is not None:
        options.experimental_optimization.apply_default_optimizations = stage.optimizations
    if stage.warm_start is not None:
        options.experimental_warm_start = stage.warm_start
    return options


def one_pass(dataset: Any, element: Element) -> list[Any]:
    """Return the examples of one iteration of a dataset, batches and tuples flattened in order."""
    return [example for value in dataset for example in examples_of(value, element)]


def examples_of(value: Any, element: Element) -> Iterator[Any]:
    """Yield the examples of an element, those of a tuple of a batch side by side.

    What TFDS reads is a dict, which is known by its name or, without names, by its id.
    """
    if element == "example":
        if isinstance(value, dict):
            value = value["tfds_id"] if "tfds_id" in value else value["id"]
        value = value.numpy() if hasattr(value, "numpy") else value
        yield value.decode() if isinstance(value, bytes) else int(value)
    elif element[0] == "batch":
        for index in range(len(_any_leaf(value))):
            yield from examples_of(_at(value, index), element[1])
    else:
        for part, inner in zip(value, element, strict=True):
            yield from examples_of(part, inner)


def _any_leaf(value: Any) -> Any:
    while isinstance(value, tuple | dict):
        value = value[0] if isinstance(value, tuple) else next(iter(value.values()))
    return value


def _at(value: Any, index: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_at(part, index) for part in value)
    if isinstance(value, dict):
        return {name: _at(part, index) for name, part in value.items()}
    return (value.numpy() if hasattr(value, "numpy") else value)[index]


def epochs_of_fit(dataset: Any, element: Element, epochs: int) -> list[list[Any]]:
    """Return the examples that each epoch of Keras' `fit` trains on."""
    import keras

    seen: list[list[Any]] = []

    class Recorder(keras.Model):  # type: ignore[misc]
        def train_step(self, value: Any) -> dict[str, float]:
            seen[-1].extend(examples_of(value, element))
            return {"loss": 0.0}

    class EachEpoch(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            seen.append([])

    model = Recorder()
    model.compile(run_eagerly=True)
    model.fit(dataset, shuffle=False, epochs=epochs, verbose=0, callbacks=[EachEpoch()])
    return seen
