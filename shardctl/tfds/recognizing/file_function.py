"""What a function does with a file: the body that `interleave` or `flat_map` applies to a row.

TFDS's own (core/reader.py, _get_dataset_from_filename) and the `tf.data.TFRecordDataset` of a
script are read by what they do, so that nothing in between is overlooked: a `filter` or another
`shuffle` inside a file makes the order open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.tfds.recognizing.graph import Function

_MOST_STEPS = 64  # of a body, from the file to what it returns


@dataclass(frozen=True, kw_only=True)
class FileFunction:
    """Which parameters of a function are the file, and how many of its records it skips and takes.

    skip, take: the index of a parameter, None where all records are read.
    """

    path: int
    skip: int | None = None
    take: int | None = None
    compression: str = ""
    is_parquet: bool = False


def file_function(function: Function) -> FileFunction | None:
    """Return what a function does with a file, None where it does anything that is not known."""
    if len(function.returned) != 1:
        return None
    return _read(function, function.returned[0], _MOST_STEPS)


def _read(function: Function, name: str, steps: int) -> FileFunction | None:
    op = function.op(name)
    if op is None or not steps:
        return None
    if op == "TFRecordDataset":
        return _records(function, name)
    if op == "FlatMapDataset":
        return _flat_map(function, name)
    if op == "ZipDataset":
        return _with_ids(function, name, steps)
    if op in ("MapDataset", "PrefetchDataset"):
        return _read(function, function.inputs(name)[0], steps - 1)
    if op in ("SkipDataset", "TakeDataset"):
        below, count = function.inputs(name)[:2]
        found = _read(function, below, steps - 1)
        if found is None or count not in function.parameters:
            return None
        place = function.parameters.index(count)
        # TFDS skips, then takes; the other way round counts otherwise.
        if op == "SkipDataset" and (found.skip, found.take) == (None, None):
            return replace(found, skip=place)
        if op == "TakeDataset" and found.take is None:
            return replace(found, take=place)
    return None


def _records(function: Function, name: str) -> FileFunction | None:
    path, compression = function.inputs(name)[:2]
    while function.op(path) == "Reshape":
        path = function.inputs(path)[0]
    if path not in function.parameters:
        return None
    text = function.constant(compression)
    if text is None:
        return None
    return FileFunction(path=function.parameters.index(path), compression=text.item().decode())


def _flat_map(function: Function, name: str) -> FileFunction | None:
    """Return what `TFRecordDataset(path)`, or TFDS's reader of Parquet files, reads."""
    rows, *captured = function.inputs(name)
    called = function.called(name)
    if called is None:
        return None
    if function.op(rows) == "TensorSliceDataset":
        inner = file_function(called)
        (path,) = function.inputs(rows)
        while function.op(path) == "Reshape":
            path = function.inputs(path)[0]
        if inner is None or path not in function.parameters or captured:
            return None
        if (inner.path, inner.skip, inner.take) != (0, None, None):
            return None
        return replace(inner, path=function.parameters.index(path))
    generates = [node.op for node in called.nodes.values() if node.op == "GeneratorDataset"]
    if function.op(rows) == "TensorDataset" and generates and len(captured) == 1:
        (path,) = captured
        if path in function.parameters:
            return FileFunction(path=function.parameters.index(path), is_parquet=True)
    return None


def _with_ids(function: Function, name: str, steps: int) -> FileFunction | None:
    """Return what is read beside the counter of `add_tfds_id`, which has no end."""
    inputs = function.inputs(name)
    if len(inputs) != 2 or not _is_counter(function, inputs[0]):
        return None
    return _read(function, inputs[1], steps - 1)


def _is_counter(function: Function, name: str) -> bool:
    for op in ("MapDataset", "ScanDataset"):
        if function.op(name) != op:
            return False
        name = function.inputs(name)[0]
    if function.op(name) != "RepeatDataset":
        return False
    count = function.constant(function.inputs(name)[1])
    return count is not None and int(count) < 0
