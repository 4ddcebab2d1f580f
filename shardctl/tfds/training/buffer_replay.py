"""A shuffle buffer that continues from where it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.resume.resume_plan import ShuffleState
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.errors import DatasetError
from shardctl.tfds.imports import tensorflow

# Records that pass through Python at a time: enough that a call for each piece costs little, and
# few enough that they take little memory beside the buffer.
PIECE_SIZE = 256
_REPLAY_SIZE = 1 << 13
_FEWER = "the files hold fewer examples than the metadata says"


def replayed(rest: Any, held: Any, held_codes: Int64s, state: ShuffleState, stop: int) -> Any:
    """Return the dataset that a shuffle of `rest` hands out from where its buffer was.

    `held` yields (record, code), the records that the buffer held, or is None; `held_codes`
    (int64[p]) are their codes in the order in which they were read. `rest` yields the records that
    were to be read next. Outputs [state.emitted, stop) are handed out. A record is a string scalar
    or a tuple of them.

    Memory: the records of the buffer, and a few pieces of PIECE_SIZE. Every iteration begins anew.
    """
    tf = tensorflow()
    spec = rest.element_spec
    replay = ShuffleReplay(
        num_elements=state.num_elements, buffer_size=state.buffer_size, seeds=state.seeds
    )

    def pieces() -> Iterator[Any]:
        store: dict[int, Any] = {}
        if held is not None:
            store.update(_held_records(replay, held, held_codes, state.emitted))
        incoming = rest.batch(PIECE_SIZE).prefetch(2).as_numpy_iterator()
        num_read = state.num_read
        for chunk in replay.chunks(state.emitted, stop, chunk_size=_REPLAY_SIZE):
            for start in range(0, len(chunk), PIECE_SIZE):
                inputs = chunk[start : start + PIECE_SIZE].tolist()
                while num_read <= max(inputs):
                    records = _rows(next(incoming, ()))
                    if not records:
                        raise DatasetError(_FEWER)
                    store.update(
                        zip(range(num_read, num_read + len(records)), records, strict=True)
                    )
                    num_read += len(records)
                if not store.keys() >= set(inputs):
                    raise DatasetError(_FEWER)
                yield _piece([store.pop(position) for position in inputs], spec)

    signature = tf.nest.map_structure(lambda part: tf.TensorSpec([None], part.dtype), spec)
    return tf.data.Dataset.from_generator(pieces, output_signature=signature).unbatch()


def _held_records(
    replay: ShuffleReplay, held: Any, held_codes: Int64s, emitted: int
) -> Iterator[tuple[int, Any]]:
    """Yield (input position, record) of what the buffer held."""
    by_code = np.argsort(held_codes, kind="stable")
    ordered, positions = held_codes[by_code], replay.pending(emitted)[by_code]
    for records, codes in held.batch(PIECE_SIZE).prefetch(2).as_numpy_iterator():
        for record, code in zip(_rows(records), codes.tolist(), strict=True):
            # A sum that reads an example twice may hold it twice.
            low, high = np.searchsorted(ordered, [code, code + 1]).tolist()
            for position in positions[low:high].tolist():
                yield position, record


def _rows(batch: Any) -> list[Any]:
    if isinstance(batch, tuple):  # also the empty one
        return list(zip(*(column.tolist() for column in batch), strict=True))
    records: list[Any] = batch.tolist()
    return records


def _piece(records: list[Any], spec: Any) -> Any:
    if isinstance(spec, tuple):
        return tuple(np.array(column, object) for column in zip(*records, strict=True))
    return np.array(records, object)
