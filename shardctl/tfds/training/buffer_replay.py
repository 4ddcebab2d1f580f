"""A shuffle buffer that continues from where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.resume.resume_plan import ShuffleState
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.training.records import as_tensors, kernel_shuffle

# What is looked up at a time: enough that a call for each piece costs little, and few enough that
# it takes little memory beside the buffer. Of places it may be more than of records.
_PIECE_SIZE, _PLACES_IN_PIECE = 256, 4096
_FEWER = "the files hold fewer examples than the metadata says"

Decode = Callable[[Any], Any]


def replayed(
    rest: Any, held: Any, held_codes: Int64s, state: ShuffleState, stop: int, decode: Decode
) -> Any:
    """Return the dataset that a shuffle of the examples of `rest` hands out from where it was.

    `held` yields pieces of the records that the buffer held, as `RecordReader.chosen` does for
    `held_codes` in ascending order, or is None; `held_codes` (int64[p]) are their codes in the
    order in which they were read. `rest` yields the records that were to be read next. A record is
    a string scalar or a tuple of them; `decode` makes a dataset of examples of a dataset of
    records. Outputs [state.emitted, stop) are handed out.

    TensorFlow's own shuffle is led to that place: as many examples as it has read pass through it
    once more, those that its buffer held in their places and one of them, again and again, in all
    others; what it has handed out is dropped. From there on it is the shuffle of the uninterrupted
    pipeline, to the end of the epoch. An example that is there again is not copied, and takes about
    two microseconds.

    Memory: the buffer's records, then its examples, and a few pieces. Every iteration begins anew.
    """
    tf = tensorflow()
    spec = rest.element_spec
    fewer = tf.data.Dataset.range(1).map(without_autograph(lambda _: _no_record(spec)))
    inputs = decode(rest.concatenate(fewer).take(state.num_elements - state.num_read))
    if held is not None:
        inputs = _inputs_read(spec, held, held_codes, state, decode).concatenate(inputs)
    elif state.emitted:  # a buffer of one, or nothing is left: no shuffle changes that
        return inputs.take(stop - state.emitted)
    pair = tf.constant([state.seeds.seed, state.seeds.seed2], tf.int64)
    outputs = kernel_shuffle(inputs, state.buffer_size, pair).skip(state.emitted)
    return outputs if stop == state.num_elements else outputs.take(stop - state.emitted)


def _inputs_read(
    spec: Any, held: Any, held_codes: Int64s, state: ShuffleState, decode: Decode
) -> Any:
    """Return as many examples as the shuffle has read: those that it held in their places."""
    tf, ops = tensorflow(), tensorflow().raw_ops
    width, num_held = len(tf.nest.flatten(spec)), np.int64(len(held_codes))
    order_read = np.argsort(held_codes, kind="stable")
    pieces = tf.data.Dataset.range(0, num_held, _PIECE_SIZE)

    def of_iterator(_: Any) -> Any:
        # A table without a name belongs to this iterator alone, and goes with it.
        table = ops.AnonymousMutableHashTableOfTensors(
            key_dtype=tf.int64, value_dtype=tf.string, value_shape=[width]
        )

        def fill(num_pieces: Any, piece: Any) -> Any:
            records, ranks = piece
            keys = tf.gather(order_read, ranks)
            values = tf.stack(tf.nest.flatten(records), axis=1)
            done = ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
            with tf.control_dependencies([done]):
                return num_pieces + 1

        def found(keys: Any) -> Any:
            empty = tf.fill([width], "")
            return ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=empty)

        def packed(values: Any) -> Any:
            return tf.nest.pack_sequence_as(spec, tf.unstack(values, axis=-1))

        def look_up(start: Any) -> Any:
            keys = tf.range(start, tf.minimum(start + _PIECE_SIZE, num_held))
            values = found(keys)
            with tf.control_dependencies([values]):
                gone = ops.LookupTableRemoveV2(table_handle=table, keys=keys)
            with tf.control_dependencies([gone]):
                return packed(tf.identity(values))

        filled = held.reduce(tf.constant(0, tf.int64), without_autograph(fill))
        with tf.control_dependencies([filled]):
            size = ops.LookupTableSizeV2(table_handle=table)
        with tf.control_dependencies([tf.debugging.assert_equal(size, num_held, _FEWER)]):
            first = packed(found(np.zeros(1, np.int64))[0])
        one = decode(tf.data.Dataset.from_tensors(first))
        again = _repeated(one, state.num_read)
        in_order = decode(pieces.map(without_autograph(look_up)).unbatch())
        return tf.data.Dataset.choose_from_datasets([again, in_order], _choices(state))

    return tf.data.Dataset.from_tensors(0).flat_map(without_autograph(of_iterator))


def _repeated(one: Any, times: int) -> Any:
    """Return the one example of a dataset so many times, each time the same tensors.

    A map that hands on what it has captured runs no function, where that is a tensor.
    """
    data = tensorflow().data
    numbers = data.Dataset.range(times)

    def every_time(*tensors: Any) -> Any:
        return numbers.map(without_autograph(lambda _: tensors))

    again = as_tensors(one).flat_map(without_autograph(every_time))
    return data.experimental.from_variant(data.experimental.to_variant(again), one.element_spec)


def _choices(state: ShuffleState) -> Any:
    """Return for each input that was read 1 where the buffer held it, else 0."""
    tf = tensorflow()
    replay = ShuffleReplay(
        num_elements=state.num_elements, buffer_size=state.buffer_size, seeds=state.seeds
    )
    held = tf.constant(replay.pending(state.emitted))

    def piece(start: Any) -> Any:
        stop = tf.minimum(start + _PLACES_IN_PIECE, state.num_read)
        low, high = tf.unstack(tf.searchsorted(held, [start, stop], out_type=tf.int64))
        places = held[low:high] - start
        return tf.scatter_nd(places[:, None], tf.ones_like(places), [stop - start])

    starts = tf.data.Dataset.range(0, state.num_read, _PLACES_IN_PIECE)
    return starts.map(without_autograph(piece)).unbatch()


def _no_record(spec: Any) -> Any:
    tf = tensorflow()
    with tf.control_dependencies([tf.debugging.Assert(False, [_FEWER])]):
        return tf.nest.map_structure(lambda part: tf.constant("", part.dtype), spec)
