"""Examples as padded batches of one static shape, with a mask of the real ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shardctl.errors import UsageError
from shardctl.tfds.evaluating.examples import HostExamples
from shardctl.tfds.imports import tensorflow, without_autograph


def padded_batches(
    own: HostExamples, *, repeats: bool, device_axis: bool, sample_weight: bool
) -> Any:
    """Return the `tf.data.Dataset` of a host's batches, each with its mask.

    Padding stands behind the examples, so that batches are cut from one stream without a copy more
    than `Dataset.batch` makes. It `repeats` an example of the dataset, or is zeros. With
    `sample_weight` the mask becomes the weights of Keras.

    Raises:
        UsageError: examples of different shapes, what has none, or no (x, y) to weigh.
    """
    tf = tensorflow()
    plan, num_steps = own.plan, own.num_steps
    examples = own.examples()
    _check_shapes(examples.element_spec)
    if sample_weight:
        _check_weighable(examples.element_spec)
    num_padding = num_steps * plan.host_batch - own.num_examples
    if num_padding:
        one = own.one_example().cache() if repeats else _zeros(examples.element_spec)
        examples = examples.concatenate(one.repeat(num_padding))
    batches = examples.batch(plan.host_batch, drop_remainder=True)
    attach = _weighted if sample_weight else _masked

    def finish(step: Any, batch: Any) -> Any:
        places = step * plan.host_batch + tf.range(plan.host_batch, dtype=tf.int64)
        finished = attach(batch, places < own.num_examples)
        if not device_axis:
            return finished
        shape = (plan.num_devices, plan.device_batch)
        return tf.nest.map_structure(
            lambda value: tf.reshape(value, (*shape, *value.shape[1:])), finished
        )

    numbered = tf.data.Dataset.zip((tf.data.Dataset.range(num_steps), batches))
    made = numbered.map(without_autograph(finish)).prefetch(tf.data.AUTOTUNE)
    # A host's dataset is its own part; tf.distribute is not to share it again.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(options)


def _masked(batch: Any, mask: Any) -> Any:
    # A namedtuple is a structure of its own, and stays one.
    return (*batch, mask) if type(batch) is tuple else (batch, mask)


def _weighted(batch: Any, mask: Any) -> Any:
    tf = tensorflow()
    x, y, *weights = batch
    if not weights:
        return x, y, tf.cast(mask, tf.float32)  # of bools tf.distribute makes no mean

    def without_padding(weight: Any) -> Any:
        real = tf.reshape(mask, (-1, *[1] * (len(weight.shape) - 1)))
        return tf.where(real, weight, tf.zeros((), weight.dtype))

    return x, y, tf.nest.map_structure(without_padding, weights[0])


def _zeros(element_spec: Any) -> Any:
    tf = tensorflow()
    return tf.data.Dataset.from_tensors(
        tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), element_spec)
    )


def _check_shapes(element_spec: Any) -> None:
    """Refuse what cannot be a batch of one shape, by its name.

    Raises:
        UsageError: a shape that is open, or what is no plain tensor.
    """
    tf = tensorflow()
    for name, spec in _leaves(element_spec, "example"):
        if not isinstance(spec, tf.TensorSpec):
            raise UsageError(
                f"{name} is a {type(spec).__name__.removesuffix('Spec')}, and a batch of one shape "
                "is made of plain tensors; make it one in transform, as by "
                "to_tensor(shape=..) or tf.sparse.to_dense, or leave it out there"
            )
        if not spec.shape.is_fully_defined():
            raise UsageError(
                f"{name} has the shape {spec.shape}, and examples of several shapes are no batch "
                "of one shape; give all the same in transform, by tf.image.resize, tf.pad or a "
                "slice, by tf.ensure_shape where they have it, or leave it out there"
            )


def _check_weighable(element_spec: Any) -> None:
    """Refuse what Keras would take for something else than inputs and targets.

    Raises:
        UsageError: examples that are no tuple of two or three.
    """
    if type(element_spec) is not tuple or len(element_spec) not in (2, 3):
        found = f"a tuple of {len(element_spec)}" if type(element_spec) is tuple else "no tuple"
        raise UsageError(
            "sample_weight=True: Keras weighs y of examples (x, y), and an example is "
            f"{found}; return (x, y) from transform, or (x, y, weight)"
        )


def _leaves(spec: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each component of an element with the words by which a transform reaches it."""
    if isinstance(spec, Mapping):
        for key, part in spec.items():
            yield from _leaves(part, f"{name}[{key!r}]")
    elif isinstance(spec, tuple):
        for key, part in zip(getattr(spec, "_fields", range(len(spec))), spec, strict=True):
            yield from _leaves(part, f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]")
    else:  # a class of attrs, or one component
        for part in tensorflow().nest.flatten(spec):
            yield name, part
