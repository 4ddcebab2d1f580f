"""TensorFlow's shuffle kernel: with given seeds, and from the middle of its random numbers on."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardctl.errors import UnpredictableOrderError
from shardctl.tfdata.shuffle_seeds import KernelSeeds
from shardctl.tfds.imports import tensorflow, without_autograph


def kernel_shuffle(
    dataset: Any, buffer_size: int, seeds: Any, *, reshuffles: bool | None = None
) -> Any:
    """Return `dataset.shuffle(buffer_size)` with the two seeds of the kernel given as they are.

    `seeds` is an int64[2] tensor. `Dataset.shuffle` takes one seed and draws those of each
    iterator by itself, most of which no argument of it can reach; the op behind it takes any.
    Every iterator has the same order, but by `reshuffles` what the iterators of a script have.
    """
    tf = tensorflow()
    # ShuffleDataset keeps one order for all iterators. V3 has a seed generator, of which a dummy
    # keeps the seeds as they are.
    op, more = tf.raw_ops.ShuffleDataset, {}
    if reshuffles is not None:
        op = tf.raw_ops.ShuffleDatasetV3
        more = {"seed_generator": tf.raw_ops.DummySeedGenerator()}
    shuffled = op(
        input_dataset=tf.data.experimental.to_variant(dataset),
        buffer_size=tf.constant(buffer_size, tf.int64),
        seed=seeds[0],
        seed2=seeds[1],
        **_flat(dataset),
        reshuffle_each_iteration=bool(reshuffles),
        **more,
    )
    return tf.data.experimental.from_variant(shuffled, dataset.element_spec)


def _flat(dataset: Any) -> dict[str, Any]:
    """Return types and shapes of the tensors of an element, as kernels take them.

    A ragged or sparse tensor and a dataset is one tensor of variants there; what it consists of has
    no public name. `_flat_structure` is what every dataset of TensorFlow gives its own kernel.
    """
    return {key: dataset._flat_structure[key] for key in ("output_types", "output_shapes")}


# A shuffle that begins in the middle.
#
# A new kernel that is fed what the buffer held, in the order of its places, and then the rest, is
# the old one but for its random numbers. An iterator that is restored from a checkpoint skips those
# that were drawn, however many (RestoreInternal of tensorflow/core/kernels/data/
# shuffle_dataset_op.cc; Philox is a counter). So an iterator of the shuffle is made within the
# dataset, and restored from the checkpoint of a new iterator in which that one number is changed.

_IN_WINDOW = 16  # elements that are handed over at a time: a call for each takes as long as these
_DRAWN = b"num_random_samples"


def shuffled_from(
    dataset: Any, buffer_size: int, seeds: KernelSeeds, *, num_drawn: int, num_elements: int
) -> Any:
    """Return `kernel_shuffle(dataset, ..)` of so many elements, after `num_drawn` random numbers.

    Each iterator begins anew. The checkpoint is in the graph, as bytes of this TensorFlow.

    Raises:
        UnpredictableOrderError: this TensorFlow has other checkpoints.
    """
    tf = tensorflow()
    pair = tf.constant([seeds.seed, seeds.seed2], tf.int64)
    state = _state(pair, num_drawn)
    windows = _as_it_is(kernel_shuffle(dataset, buffer_size, pair).window(_IN_WINDOW))

    def of_iterator(_: Any) -> Any:
        iterator = _iterator(windows, state)

        def window(_: Any) -> Any:
            # `Sync`: nothing waits for a thread. The windows are variants, one for each component.
            return tuple(tf.raw_ops.IteratorGetNextSync(iterator=iterator, **_flat(windows)))

        numbers = tf.data.Dataset.range(-(-num_elements // _IN_WINDOW))
        return numbers.map(without_autograph(window)).flat_map(without_autograph(elements))

    def elements(*parts: Any) -> Any:
        each = zip(parts, tf.nest.flatten(windows.element_spec), strict=True)
        sets = [tf.data.experimental.from_variant(part, spec.element_spec) for part, spec in each]
        return tf.data.Dataset.zip(tf.nest.pack_sequence_as(windows.element_spec, sets))

    return tf.data.Dataset.from_tensors(0).flat_map(without_autograph(of_iterator))


def _as_it_is(windows: Any) -> Any:
    """Return windows whose iterator is that of a window over a shuffle: no prefetch is added."""
    options = tensorflow().data.Options()
    options.experimental_optimization.inject_prefetch = False
    return windows.with_options(options)


def _iterator(dataset: Any, state: Any = None) -> Any:
    """Return a new iterator's resource, restored from a state."""
    tf = tensorflow()
    iterator = tf.raw_ops.AnonymousIteratorV3(**_flat(dataset))
    made = tf.raw_ops.MakeIterator(
        dataset=tf.data.experimental.to_variant(dataset), iterator=iterator
    )
    with tf.control_dependencies([made]):
        if state is not None:
            made = tf.raw_ops.DeserializeIterator(resource_handle=iterator, serialized=state)
    with tf.control_dependencies([made]):
        return tf.identity(iterator)


def _state(pair: Any, num_drawn: int) -> Any:
    """Return the state of an iterator that has read nothing, but for the numbers that it drew."""
    from google.protobuf.internal.decoder import _DecodeVarint32
    from google.protobuf.internal.encoder import _VarintBytes
    from tensorflow.core.framework import tensor_pb2

    tf = tensorflow()
    with tf.init_scope():  # nothing of it depends on the elements
        windows = kernel_shuffle(tf.data.Dataset.range(1), 1, pair).window(_IN_WINDOW)
        saved = tf.raw_ops.SerializeIterator(resource_handle=_iterator(_as_it_is(windows)))
        tensor = tensor_pb2.TensorProto.FromString(tf.io.serialize_tensor(saved).numpy())
        # A variant's tensor is the lengths of its messages, and then these.
        content, at, lengths, messages, found = tensor.tensor_content, 0, [], [], 0
        for _ in range(int(saved.shape[0])):
            length, at = _DecodeVarint32(content, at)
            lengths.append(length)
        for stop in (at + np.cumsum(lengths)).tolist():
            message = tensor_pb2.VariantTensorDataProto.FromString(content[at:stop])
            prefix, *keys = message.metadata.split(b"@@")
            if prefix.endswith(b"::Shuffle") and _DRAWN in keys:
                values = _values(message.tensors, len(keys))
                values[keys.index(_DRAWN)] = num_drawn
                del message.tensors[:]
                message.tensors.extend(tf.make_tensor_proto(value, tf.int64) for value in values)
                found += 1
            messages.append(message.SerializeToString())
            at = stop
    if found != 1:
        raise UnpredictableOrderError(
            f"TensorFlow {tf.__version__} keeps the state of a shuffle in another way, so that no "
            "buffer can be continued; use 2.16 to 2.21, or resume --mode exactly-once"
        )
    tensor.tensor_content = b"".join([*map(_VarintBytes, map(len, messages)), *messages])
    return tf.io.parse_tensor(tensor.SerializeToString(), tf.variant)


def _values(tensors: Any, count: int) -> list[int]:
    """Return the whole numbers of a message, which TensorFlow compresses into one tensor."""
    tf = tensorflow()
    if len(tensors) != 1 or tensors[0].dtype != tf.variant.as_datatype_enum:
        return [int(tf.make_ndarray(tensor)) for tensor in tensors]
    found = tf.raw_ops.UncompressElement(
        compressed=tf.io.parse_tensor(tensors[0].SerializeToString(), tf.variant),
        output_types=[tf.int64] * count,
        output_shapes=[[]] * count,
    )
    return [int(value) for value in found]
