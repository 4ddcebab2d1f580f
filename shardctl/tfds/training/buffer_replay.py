"""A shuffle buffer that continues from where it was."""

from __future__ import annotations

from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.resume.resume_plan import ShuffleState
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.training.records import kernel_shuffle

# Inputs that are looked up at a time: enough that a call for each piece costs little, and few
# enough that their records take little memory beside the buffer.
_PIECE_SIZE = 256
_FEWER = "the files hold fewer examples than the metadata says"


def replayed(rest: Any, held: Any, held_codes: Int64s, state: ShuffleState, stop: int) -> Any:
    """Return the dataset that a shuffle of `rest` hands out from where its buffer was.

    `held` yields pieces of the records that the buffer held, as `RecordReader.chosen` does for
    `held_codes` in ascending order, or is None; `held_codes` (int64[p]) are their codes in the
    order in which they were read. `rest` yields the records that were to be read next. Outputs
    [state.emitted, stop) are handed out. A record is a string scalar or a tuple of them.

    TensorFlow's own shuffle is led to that place: what it has read passes through it once more,
    empty but for the records that its buffer held, and what it has handed out is dropped. From
    there on it is the shuffle of the uninterrupted pipeline, to the end of the epoch. An empty
    record takes about a microsecond.

    Memory: the records of the buffer, and a few pieces. Every iteration begins anew.
    """
    tf = tensorflow()
    spec = rest.element_spec
    fewer = tf.data.Dataset.range(1).map(without_autograph(lambda _: _no_record(spec)))
    num_left = state.num_elements - state.num_read
    inputs = _inputs_read(spec, held, held_codes, state).concatenate(
        rest.concatenate(fewer).take(num_left)
    )
    pair = tf.constant([state.seeds.seed, state.seeds.seed2], tf.int64)
    outputs = kernel_shuffle(inputs, state.buffer_size, pair).skip(state.emitted)
    return outputs if stop == state.num_elements else outputs.take(stop - state.emitted)


def _inputs_read(spec: Any, held: Any, held_codes: Int64s, state: ShuffleState) -> Any:
    """Return the inputs that the shuffle has read: records that it held, others empty."""
    tf, ops = tensorflow(), tensorflow().raw_ops
    starts = tf.data.Dataset.range(0, state.num_read, _PIECE_SIZE)
    width = len(tf.nest.flatten(spec))
    replay = ShuffleReplay(
        num_elements=state.num_elements, buffer_size=state.buffer_size, seeds=state.seeds
    )
    positions = replay.pending(state.emitted)[np.argsort(held_codes, kind="stable")]

    def of_iterator(_: Any) -> Any:
        # A table without a name belongs to this iterator alone, and goes with it.
        table = ops.AnonymousMutableHashTableOfTensors(
            key_dtype=tf.int64, value_dtype=tf.string, value_shape=[width]
        )

        def fill(records: Any, ranks: Any) -> Any:
            keys = tf.gather(positions, ranks)
            values = tf.stack(tf.nest.flatten(records), axis=1)
            done = ops.LookupTableInsertV2(table_handle=table, keys=keys, values=values)
            with tf.control_dependencies([done]):
                return found(keys[:0])

        def look_up(start: Any) -> Any:
            size = ops.LookupTableSizeV2(table_handle=table)
            whole = tf.debugging.assert_greater_equal(size, missing_after(start), _FEWER)
            with tf.control_dependencies([whole]):
                return found(tf.range(start, tf.minimum(start + _PIECE_SIZE, state.num_read)))

        def missing_after(start: Any) -> Any:
            return len(positions) - tf.searchsorted(positions_ascending, [start], out_type=tf.int64)

        def found(keys: Any) -> Any:
            empty = tf.fill([width], "")
            values = ops.LookupTableFindV2(table_handle=table, keys=keys, default_value=empty)
            with tf.control_dependencies([values]):
                gone = ops.LookupTableRemoveV2(table_handle=table, keys=keys)
            with tf.control_dependencies([gone]):
                columns = [tf.identity(column) for column in tf.unstack(values, axis=1)]
            return tf.nest.pack_sequence_as(spec, columns)

        read = starts.map(without_autograph(look_up))
        if held is not None:
            read = held.map(without_autograph(fill)).concatenate(read)
        return read.unbatch()

    positions_ascending = tf.constant(np.sort(positions))
    return tf.data.Dataset.from_tensors(0).flat_map(without_autograph(of_iterator))


def _no_record(spec: Any) -> Any:
    tf = tensorflow()
    with tf.control_dependencies([tf.debugging.Assert(False, [_FEWER])]):
        return tf.nest.map_structure(lambda part: tf.constant("", part.dtype), spec)
