"""Examples as padded batches of one static shape, with a mask of the real ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shardctl.errors import UsageError
from shardctl.tfds.evaluating.examples import HostExamples
from shardctl.tfds.imports import tensorflow, without_autograph


def padded_batches(own: HostExamples, *, repeats: bool, device_axis: bool) -> Any:
    """Return the `tf.data.Dataset` of a host's batches, each with its mask.

    Padding stands behind the examples, so that batches are cut from one stream without a copy more
    than `Dataset.batch` makes. It `repeats` an example of the dataset, or is zeros.

    Raises:
        UsageError: examples of different shapes, or what has none.
    """
    tf = tensorflow()
    plan, num_steps = own.plan, own.num_steps
    examples = own.examples()
    _check_shapes(examples.element_spec)
    num_padding = num_steps * plan.host_batch - own.num_examples
    if num_padding:
        one = own.one_example().cache() if repeats else _zeros(examples.element_spec)
        examples = examples.concatenate(one.repeat(num_padding))
    batches = examples.batch(plan.host_batch, drop_remainder=True)
    places = tf.range(plan.host_batch, dtype=tf.int64)
    finish = _finish(places, plan.host_batch, own.num_examples)
    if device_axis:
        finish = _by_device(finish, plan.num_devices, plan.device_batch)
    numbered = tf.data.Dataset.zip((tf.data.Dataset.range(num_steps), batches))
    made = numbered.map(without_autograph(finish)).prefetch(tf.data.AUTOTUNE)
    # A host's dataset is its own part; tf.distribute is not to share it again.
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return made.with_options(options)


def _finish(places: Any, host_batch: int, num_examples: int) -> Callable[[Any, Any], Any]:
    """Return the map that gives a batch its mask: the places that hold one of the examples."""

    def finish(step: Any, batch: Any) -> Any:
        mask = step * host_batch + places < num_examples
        # A tuple, as Keras takes it, is (x, y, mask); a namedtuple is one structure.
        return (*batch, mask) if type(batch) is tuple else (batch, mask)

    return finish


def _by_device(finish: Callable[[Any, Any], Any], devices: int, batch: int) -> Any:
    tf = tensorflow()

    def split(value: Any) -> Any:
        return tf.reshape(value, (devices, batch, *value.shape[1:]))

    return lambda step, batch: tf.nest.map_structure(split, finish(step, batch))


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


def _leaves(spec: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each component of an element with the words by which a transform reaches it."""
    if isinstance(spec, Mapping):
        for key, part in spec.items():
            yield from _leaves(part, f"{name}[{key!r}]")
    elif isinstance(spec, tuple):
        for key, part in zip(getattr(spec, "_fields", range(len(spec))), spec, strict=True):
            yield from _leaves(part, f"{name}.{key}" if isinstance(key, str) else f"{name}[{key}]")
    else:
        yield name, spec
