"""The list of files that a reader opens, as rows, and what is done with the list before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardctl.core.hosts.host import Host
from shardctl.core.stages.fields import KernelPair
from shardctl.tfds.recognizing.graph import NoConstantError, Operation, constant
from shardctl.tfds.recognizing.seeds import kernel_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """The rows of a list of files, in the order in which the list has them.

    columns: the components of a row, each an array[n].
    shuffle: the operation that shuffles the list, None without one; with its kernel pair, which is
        None where nothing seeds it.
    """

    columns: tuple[NDArray[Any], ...]
    host: Host | None = None
    shuffle: Operation | None = None
    pair: KernelPair | None = None
    reshuffle: bool = True
    repeats: bool = False
    operations: tuple[Operation, ...] = ()

    def __len__(self) -> int:
        return len(self.columns[0])


class UnknownRowsError(Exception):
    """A list of files of which something is not known; says what."""


def rows_of(operation: Operation) -> Rows:
    """Return the rows that an operation lists.

    Raises:
        UnknownRowsError: it does what the settings of a reader cannot say.
    """
    chain: list[Operation] = []
    here = operation
    while here.op not in _SOURCES:
        if here.op not in _STEPS:
            raise UnknownRowsError(f"{here.op} makes the list of its files")
        chain.append(here)
        here = here.input
    rows = _SOURCES[here.op](here)
    for step in reversed(chain):
        try:
            rows = _STEPS[step.op](rows, step)
        except NoConstantError as error:
            raise UnknownRowsError(str(error)) from error
        rows = replace(rows, operations=(*rows.operations, step))
    return rows


def _slices(operation: Operation) -> Rows:
    columns = tuple(constant(other) for other in operation.others)
    if not columns or any(column is None or column.ndim != 1 for column in columns):
        raise UnknownRowsError("the names of its files are computed anew each time")
    return Rows(columns=columns, operations=(operation,))


def _one(operation: Operation) -> Rows:
    columns = tuple(constant(other) for other in operation.others)
    if not columns or any(column is None or column.ndim for column in columns):
        raise UnknownRowsError("the names of its files are computed anew each time")
    return Rows(columns=tuple(c.reshape(1) for c in columns), operations=(operation,))


def _shard(rows: Rows, step: Operation) -> Rows:
    count, index = step.number("num_shards"), step.number("index")
    if rows.repeats:
        raise UnknownRowsError("the list of its files is sharded behind a repeat")
    if count == 1:
        return rows
    if rows.shuffle is not None:
        raise UnknownRowsError("the list of its files is shuffled, then sharded")
    if rows.host is not None:
        raise UnknownRowsError("the list of its files is sharded twice")
    return replace(rows, host=Host(index=index, count=count))


def _shuffle(rows: Rows, step: Operation) -> Rows:
    buffer = step.number("buffer_size")
    if rows.repeats or rows.shuffle is not None:
        raise UnknownRowsError("the list of its files is shuffled behind a shuffle or a repeat")
    if 0 <= buffer < _num_left(rows):
        raise UnknownRowsError(
            f"the list of its {len(rows)} files is shuffled by a buffer of {buffer}, not as a whole"
        )
    return replace(
        rows,
        shuffle=step,
        pair=kernel_pair(step),
        reshuffle=step.flag("reshuffle_each_iteration"),
    )


def _num_left(rows: Rows) -> int:
    return (
        len(rows) if rows.host is None else len(range(rows.host.index, len(rows), rows.host.count))
    )


def _repeat(rows: Rows, step: Operation) -> Rows:
    count = step.number("count")
    if count == 1:
        return rows
    if count >= 0 or rows.repeats:
        raise UnknownRowsError(f"the list of its files is repeated {count} times")
    return replace(rows, repeats=True)


def _cut(rows: Rows, step: Operation) -> Rows:
    count = step.number("count")
    everything = count < 0 if step.op == "TakeDataset" else count == 0
    if everything:
        return rows
    if rows.host is not None or rows.shuffle is not None or rows.repeats:
        raise UnknownRowsError("the list of its files is cut behind a shard, shuffle or repeat")
    kept = (
        slice(count) if step.op == "TakeDataset" else slice(count if count > 0 else len(rows), None)
    )
    return replace(rows, columns=tuple(column[kept] for column in rows.columns))


def _same(rows: Rows, step: Operation) -> Rows:
    return rows


_SOURCES = {"TensorSliceDataset": _slices, "TensorDataset": _one}
_STEPS = {
    "ShardDataset": _shard,
    "ShuffleDatasetV3": _shuffle,
    "ShuffleDatasetV2": _shuffle,
    "ShuffleDataset": _shuffle,
    "RepeatDataset": _repeat,
    "TakeDataset": _cut,
    "SkipDataset": _cut,
    "PrefetchDataset": _same,
    "OptionsDataset": _same,
    "AssertCardinalityDataset": _same,
}
