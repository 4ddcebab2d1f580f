"""What each stage and source is in tf.data: the calls by which a script makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import singledispatchmethod
from operator import attrgetter
from typing import Any

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host, HostBy
from shardctl.stages import stages as call
from shardctl.stages.part import KernelPair, OfTensorflow, Source, Stage
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, without_autograph

MakeReader = Callable[[call.Read], Any]


@dataclass(frozen=True, kw_only=True)
class StageCalls:
    """Pipelines as real datasets. `reader` makes what TFDS's reader hands out, for each `Read`.

    A map changes nothing, but is one that TensorFlow does not remove. A shared pipeline is one
    dataset object wherever its label stands.
    """

    reader: MakeReader
    _shared: dict[str, Any] = field(init=False, default_factory=dict)

    def dataset(self, pipeline: call.Pipeline) -> Any:
        """Return the `tf.data.Dataset` of a pipeline, made in the order of a script.

        Raises:
            UsageError: a stage is code that stages do not tell, as a filter is.
        """
        made = self._source(pipeline.source)
        for stage in pipeline.stages:
            made = self._stage(stage, made)
        return made

    @singledispatchmethod
    def _source(self, source: Source) -> Any:
        raise _unknown(source.called)

    @_source.register
    def _(self, source: call.Read) -> Any:
        return self.reader(source)

    @_source.register
    def _(self, source: call.Shared) -> Any:
        if source.label not in self._shared:
            self._shared[source.label] = self.dataset(source.pipeline)
        return self._shared[source.label]

    @_source.register
    def _(self, source: call.Range) -> Any:
        return tensorflow().data.Dataset.range(source.stop)

    @_source.register
    def _(self, source: call.Values) -> Any:
        tf = tensorflow()
        return tf.data.Dataset.from_tensor_slices(tf.constant(source.values, tf.int64))

    @_source.register
    def _(self, source: call.Zip) -> Any:
        return tensorflow().data.Dataset.zip(tuple(map(self.dataset, source.inputs)))

    @_source.register
    def _(self, source: call.SampleFromDatasets) -> Any:
        tf = tensorflow()
        inputs = list(map(self.dataset, source.inputs))
        if isinstance(source.seed, tuple):
            weights = source.weights or (1.0,) * len(inputs)
            kept = [(d, w) for d, w in zip(inputs, weights, strict=True) if w > 0]
            if len(kept) < 2:
                return kept[0][0] if kept else inputs[0].take(0)
            selector = _selector(
                None if source.weights is None else _array([w for _, w in kept], source),
                len(kept),
                source.seed,
                rerandomize=source.rerandomize,
            )
            return tf.data.Dataset.choose_from_datasets(
                [d for d, _ in kept], selector, stop_on_empty_dataset=source.stop_on_empty
            )
        return tf.data.Dataset.sample_from_datasets(
            inputs,
            weights=None if source.weights is None else _array(source.weights, source),
            seed=source.seed,
            stop_on_empty_dataset=source.stop_on_empty,
            rerandomize_each_iteration=source.rerandomize,
        )

    @_source.register
    def _(self, source: call.ChooseFromDatasets) -> Any:
        return tensorflow().data.Dataset.choose_from_datasets(
            list(map(self.dataset, source.inputs)),
            self.dataset(source.choices),
            stop_on_empty_dataset=source.stop_on_empty,
        )

    def _stage(self, stage: Stage, made: Any) -> Any:
        tf = tensorflow()
        match stage:
            case call.Shuffle(seed=tuple(pair)):
                return _shuffled_by_pair(made, stage.buffer, pair, stage.reshuffle)
            case call.AssertCardinality():
                return made.apply(tf.data.experimental.assert_cardinality(stage.count))
            case call.Concatenate():
                return made.concatenate(self.dataset(stage.other))
            case call.WithOptions():
                return made.with_options(_options(stage))
        found = stage.in_tf()
        if found is None:
            raise _unknown(stage.called)
        function = [_passed_on(made.element_spec)] if found.takes_function else []
        named = {name: _real(value) for name, value in found.by_name.items()}
        return getattr(made, found.method)(*function, *map(_real, found.by_place), **named)


def _real(value: Any) -> Any:
    """Return an argument, a constant of TensorFlow as what it is."""
    return attrgetter(value)(tensorflow()) if isinstance(value, OfTensorflow) else value


def _options(stage: call.WithOptions) -> Any:
    options = tensorflow().data.Options()
    for name, attribute in stage.attributes.items():
        value = getattr(stage, name)
        if value is not None:
            *within, last = attribute.split(".")
            setattr(attrgetter(".".join(within))(options) if within else options, last, value)
    return options


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"--stages: what {name} does is code of the script, so that no real pipeline can be "
        "made of it here; give the dataset object itself, to shardctl.tfds.verify or "
        "resume_like"
    )


def _passed_on(spec: Any) -> Callable[..., Any]:
    """Return a function of an element that gives it back, by an op that stays in the graph.

    TensorFlow removes maps that return their arguments (noop_elimination.cc).
    """
    tf = tensorflow()

    def again(part: Any) -> Any:
        return tf.nest.map_structure(tf.stop_gradient, part, expand_composites=True)

    if type(spec) is tuple:
        return without_autograph(lambda *parts: again(parts))
    return without_autograph(again)


def _shuffled_by_pair(made: Any, buffer: int, pair: KernelPair, reshuffle: bool | None) -> Any:
    """Return `made.shuffle(buffer)` with the two seeds of the kernel, whatever is in force."""
    seeds = tensorflow().constant(pair, tensorflow().int64)
    dataset = kernel_shuffle(made, buffer, seeds, reshuffles=reshuffle is not False)
    # Its functions go with `made`, and a graph made of this dataset later has but their names.
    dataset._shuffled = made
    return dataset


def kernel_shuffle(
    dataset: Any, buffer_size: int, seeds: Any, *, reshuffles: bool | None = None
) -> Any:
    """Return `dataset.shuffle(buffer_size)` with the two seeds of the kernel given as they are.

    `seeds` is an int64[2] tensor. `Dataset.shuffle` takes one seed and draws those of each
    iterator by itself, most of which no argument of it can reach; the op behind it takes any.
    Every iterator has the same order, but by `reshuffles` what the iterators of a script have.
    """
    tf = tensorflow()
    components = tf.nest.flatten(as_tensors(dataset).element_spec)
    op, more = tf.raw_ops.ShuffleDataset, {}
    if reshuffles is not None:
        op = tf.raw_ops.ShuffleDatasetV3
        more = {"seed_generator": tf.raw_ops.DummySeedGenerator()}
    shuffled = op(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(buffer_size, tf.int64),
        seed=seeds[0],
        seed2=seeds[1],
        output_types=[component.dtype for component in components],
        output_shapes=[component.shape for component in components],
        reshuffle_each_iteration=bool(reshuffles),
        **more,
    )
    return tf.data.experimental.from_variant(shuffled, dataset.element_spec)


def as_tensors(dataset: Any) -> Any:
    """Return a dataset with each element a tuple of tensors, as its kernel has them.

    A ragged or sparse tensor and a dataset is one tensor of variants there; what it consists of has
    no public name. `_flat_structure` is what every dataset of TensorFlow gives its own kernel.
    """
    tf = tensorflow()
    flat = dataset._flat_structure
    parts = zip(flat["output_shapes"], flat["output_types"], strict=True)
    specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in parts)
    return tf.data.experimental.from_variant(tf.data.experimental.to_variant(dataset), specs)


def _array(weights: Sequence[float], source: call.SampleFromDatasets) -> Any:
    """Return weights as a script gives them: numbers, or an array of 64 bits each."""
    import numpy as np

    return np.array(weights) if source.weights_dtype == "float64" else list(weights)


def _selector(weights: Any, num_inputs: int, pair: KernelPair, *, rerandomize: bool | None) -> Any:
    """Return what `sample_from_datasets` makes of weights and a seed, with the seeds of the kernel.

    Source: tensorflow/python/data/ops/sample_from_datasets_op.py.
    """
    tf = tensorflow()
    seeds = {"seed": tf.constant(pair[0], tf.int64), "seed2": tf.constant(pair[1], tf.int64)}
    kinds = {"output_types": [tf.int64], "output_shapes": [[]]}
    if rerandomize:
        numbers = tf.raw_ops.RandomDatasetV2(
            **seeds,
            **kinds,
            seed_generator=tf.raw_ops.DummySeedGenerator(),
            rerandomize_each_iteration=True,
        )
    else:
        numbers = tf.raw_ops.RandomDataset(**seeds, **kinds)
    drawn = tf.data.experimental.from_variant(numbers, tf.TensorSpec([], tf.int64)).batch(2)
    logits = [[1.0] * num_inputs] if weights is None else [tf.math.log(tf.constant(weights))]

    def chosen(seed: Any) -> Any:
        return tf.squeeze(
            tf.raw_ops.StatelessMultinomial(logits=logits, num_samples=1, seed=seed), axis=[0, 1]
        )

    return drawn.map(without_autograph(chosen))


# What each host mode is in TFDS and tf.data: the calls by which a host gets its examples.


def _host_by(settings: ReadSettings, mode: HostBy) -> Host | None:
    return settings.host if settings.host_by == mode else None


def split_of_host(spec: str, settings: ReadSettings) -> Any:
    """Return what `as_dataset` is asked for on the settings' host, in place of a spec."""
    host = _host_by(settings, "even")
    if host is None:
        return spec
    return tensorflow_datasets().even_splits(spec, host.count, drop_remainder=False)[host.index]


def input_context_of_host(settings: ReadSettings) -> Any:
    """Return the `ReadConfig.input_context` of the settings' host, None without one."""
    host = _host_by(settings, "files")
    if host is None:
        return None
    context = tensorflow().distribute.InputContext
    return context(num_input_pipelines=host.count, input_pipeline_id=host.index)


def instructions_of_host(rows: Any, settings: ReadSettings) -> Any:
    """Return the file instructions of the settings' host, as TFDS's reader takes its own."""
    host = _host_by(settings, "files")
    return rows if host is None else rows.shard(host.count, host.index)


def examples_of_host(examples: Any, settings: ReadSettings) -> Any:
    """Return the examples that the settings' host keeps of what its reader yields."""
    host = _host_by(settings, "examples")
    return examples if host is None else examples.shard(host.count, host.index)
