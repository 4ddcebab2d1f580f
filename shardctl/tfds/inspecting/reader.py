"""Finds the reader of a pipeline in its graph: which files it opens, by which spec and settings."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME, DEFAULT_BLOCK
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.metadata.index.count import count_files
from shardctl.metadata.index.listing import common_folder
from shardctl.metadata.reference import merge_datasets
from shardctl.metadata.tfds_metadata import dataset_in
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import Slice
from shardctl.stages.part import KernelPair
from shardctl.stores.stores import (
    RemotePath,
    as_bytes,
    file_in,
    is_file,
    is_remote,
    path_of,
    store_of,
    way_below,
)
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.graph import (
    INTERLEAVES,
    SHUFFLES,
    Function,
    NoConstantError,
    Operation,
    argument_names,
    call_name,
    constant,
)
from shardctl.tfds.inspecting.stage_of import kernel_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray


PLAIN_SPLIT = "files"  # of record files without metadata
_MANY_PARTS = 8  # of a spec, from which on a list of files says it better


class Piece(NamedTuple):
    """What one row reads: `take` records of a file after the first `skip` (None: to its end)."""

    path: str
    skip: int = 0
    take: int | None = None


class Listed(NamedTuple):
    """A list of pieces as a reader states it.

    spec: the subsplit. sorting: `reverse` or `file_order`, where the list is sorted otherwise.
    """

    dataset: Dataset
    spec: str
    sorting: tuple[tuple[str, Any], ...] = ()


def listed(
    pieces: Sequence[Piece], function: FileFunction, *, beside: Sequence[str] = ()
) -> Listed:
    """Return the dataset, spec and file order that list exactly these pieces.

    beside: files of other readers, which are of the same dataset where no metadata says of which.

    Raises:
        DatasetError: files that are not there or cannot be counted; a list that no spec says.
    """
    paths = [_whole(piece.path) for piece in pieces]
    # With dataset_info.json the files are a TFDS dataset; otherwise the records are counted.
    dataset = _dataset_of_folders(paths)
    if dataset is None:
        dataset = _plain_dataset([*paths, *map(_whole, beside)], function)
    places = _places(dataset)
    rows = [_row(dataset, places[path], piece) for path, piece in zip(paths, pieces, strict=True)]
    spec, sorting = _stated(dataset, rows)
    return Listed(dataset=dataset, spec=spec, sorting=sorting)


def _whole(path: str) -> str:
    """Return a path as it is the same in graphs and in datasets."""
    place = path_of(path)
    return str(place) if isinstance(place, RemotePath) else os.path.abspath(place)


class _Row(NamedTuple):
    """The examples [start, stop) of a split, all of one shard."""

    split: int
    shard: int
    start: int
    stop: int


def _dataset_of_folders(paths: Sequence[str]) -> Dataset | None:
    """Return the TFDS dataset whose files these are, None where they are not all of one."""
    folders = list(dict.fromkeys(map(os.path.dirname, paths)))
    # Each folder once, in order of first use.
    if not all(is_file(path_of(file_in(f, DATASET_INFO_FILENAME))) for f in folders):
        return None
    dataset = merge_datasets([dataset_in(path_of(folder)) for folder in folders])
    known = _places(dataset)
    # A folder may hold other files besides those of the dataset.
    return dataset if all(path in known for path in paths) else None


def _plain_dataset(paths: Sequence[str], function: FileFunction) -> Dataset:
    """Return record files without metadata as a dataset of one split, in the order of their names.

    Raises:
        DatasetError: a file that is not here or damaged, or compressed otherwise than the script
            says; or they lie in several places.
    """
    # By bytes, as TensorFlow and the index sort names.
    names = sorted(set(paths), key=as_bytes)
    lengths = _counted(names, function)
    folder = common_folder({f"{name.rpartition('/')[0]}/" for name in names}) or "/"
    if any(map(is_remote, names)) and folder.count("/") < 2:  # of "gs://bucket"
        raise DatasetError(f"{quoted(names[0])} and {quoted(names[-1])} are in two places")
    files = ShardFiles(
        data_dir=folder,
        names=tuple(way_below(path_of(folder), path_of(name)) for name in names),
        num_shards=len(names),
    )
    return Dataset(
        name=os.path.basename(folder) or "files",
        splits=(Split(name=PLAIN_SPLIT, shard_lengths=lengths, files=(files,)),),
        file_format=function.file_format,
        compression=function.compression or None,
        data_dir=folder,
        origin="record files",
    )


def _counted(names: Sequence[str], function: FileFunction) -> tuple[int, ...]:
    """Return how many records files hold; those that are known from the user's cache folder."""
    if function.opened is not None:
        return tuple(map(function.num_records, names))
    compression = function.compression
    files = [store_of(name).status(name) for name in names]
    # `status` is None for a file that is not there.
    if None in files:
        raise DatasetError(f"file {quoted(names[files.index(None)], 200)} missing")
    there = [file for file in files if file is not None]
    counts = count_files(there, function.file_format, cache=True)
    for place in sorted(counts.broken):
        damage = counts.broken[place].damage
        why = "cannot be counted" if damage is None else damage.text
        raise DatasetError(f"file {quoted(names[place], 200)} {why}")
    contents = [one for one in counts.contents if one is not None]
    for name, one in zip(names, contents, strict=True):
        # A file with another compression would be read as garbage, so the script's word is checked.
        if (found := one.compression or "") != compression:
            raise DatasetError(
                f"file {quoted(name, 200)} is compressed by {found or 'nothing'}, and the script "
                f"reads it by {compression or 'none'}"
            )
    return tuple(one.num_records or 0 for one in contents)


def _places(dataset: Dataset) -> Mapping[str, tuple[int, int]]:
    """Return split and shard of every file, by its path."""
    return {
        _whole(os.path.join(folder or "", name)): (index, shard)
        for index, split in enumerate(dataset.splits)
        for shard in range(split.num_shards)
        for folder, name in [split.location(shard)]
    }


def _row(dataset: Dataset, place: tuple[int, int], piece: Piece) -> _Row:
    split = dataset.splits[place[0]]
    length, offset = split.shard_lengths[place[1]], split.offsets[place[1]]
    # tf.data: a negative skip skips all, a negative take takes all.
    skip = length if piece.skip < 0 else min(piece.skip, length)
    rest = length - skip
    take = rest if piece.take is None or piece.take < 0 else min(piece.take, rest)
    # An empty file still takes a visit of its slot, and changes the order. A spec has no word for
    # it.
    if not take:
        raise DatasetError(
            f"nothing is read of file {quoted(piece.path, 200)}, which takes a slot in the "
            "interleave all the same; no spec can express that"
        )
    return _Row(split=place[0], shard=place[1], start=offset + skip, stop=offset + skip + take)


def _stated(dataset: Dataset, rows: Sequence[_Row]) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the spec, and how its files are sorted, in the fewest words."""
    # The shortest of three: as listed, reversed, or sorted with a list of names.
    as_listed = list(_merged(rows))
    if len(as_listed) == 1:
        return _spec(dataset, as_listed), ()
    back_to_front = list(_merged(rows[::-1]))
    if len(back_to_front) < len(as_listed):
        return _spec(dataset, back_to_front), (("reverse", True),)
    # A long spec is worth a list of files only if that halves it, and if names tell files apart.
    if len(as_listed) > _MANY_PARTS:
        by_id = list(_merged(sorted(rows, key=lambda row: (row.split, row.start))))
        names = tuple(dataset.splits[row.split].filename(row.shard) for row in rows)
        if 2 * len(by_id) < len(as_listed) and len(set(names)) == len(names):
            return _spec(dataset, by_id), (("file_order", names),)
    return _spec(dataset, as_listed), ()


def _merged(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the ranges that TFDS cuts into exactly these rows."""
    here = rows[0]
    for row in rows[1:]:
        # Adjacent, and of a later shard: TFDS would cut one range at the same places. Two pieces of
        # one shard would become one.
        if (row.split, row.start) == (here.split, here.stop) and row.shard > here.shard:
            here = here._replace(stop=row.stop, shard=row.shard)
            continue
        yield here
        here = row
    yield here


def _spec(dataset: Dataset, ranges: Sequence[_Row]) -> str:
    parts = []
    for piece in ranges:
        split = dataset.splits[piece.split]
        # Bounds that are those of the split are left out.
        stop = None if piece.stop == split.num_examples else piece.stop
        parts.append(str(Slice(split=split.name, start=piece.start or None, stop=stop)))
    return "+".join(parts)


# The reader of a pipeline: files opened in turn, as TFDS's or as a script's own interleave.


_TFDS_COLUMNS = 5  # of a row of TFDS's reader: path, name, prefix of ids, skip, take


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundReader:
    """A reader with its settings, of which `pair` is that of the file shuffle.

    operations: what it is made of in the graph, from the list of files up.
    is_tfds: whether it is TFDS's own, behind which its decoding belongs to it.
    in_order: the attribute `deterministic` of its interleave, "default" where options decide.
    decodes_in_order: whether TFDS's decoding yields examples as it got them.
    asserts_cardinality: whether TFDS tells TensorFlow how many examples there are.
    """

    listed: Listed
    settings: tuple[tuple[str, Any], ...]
    operations: tuple[Operation, ...]
    pair: KernelPair | None = None
    is_tfds: bool = False
    in_order: str = "true"
    decodes_in_order: bool = True
    asserts_cardinality: bool = False

    @property
    def dataset(self) -> Dataset:
        """The dataset that it reads."""
        return self.listed.dataset

    @property
    def is_endless(self) -> bool:
        """Whether it repeats its files without end."""
        return bool(dict(self.settings).get("repeat_files"))


class UnknownReaderError(NoConstantError):
    """Something that reads files in a way that the settings of a reader do not say; says which."""


def reads_files(operation: Operation) -> bool:
    """Return whether an operation opens files, in whatever way."""
    return function_of(operation) is not None


def function_of(operation: Operation) -> FileFunction | None:
    """Return what an operation does with each of its files, None of any that is no reader."""
    if operation.op in _LINES:
        return _lines(operation.node, map(constant, operation.others))
    if operation.op not in INTERLEAVES or operation.function is None:
        return None
    return file_function(operation.function)


def paths_of(operation: Operation) -> list[str]:
    """Return the files that a reader lists, nothing where they are not understood."""
    function = None if operation.function is None else file_function(operation.function)
    try:
        rows = () if function is None else rows_of(operation.input).columns[function.path].tolist()
        return list(map(os.fsdecode, rows))
    except (NoConstantError, IndexError):
        return []


def found_reader(operation: Operation, beside: Sequence[str] = ()) -> FoundReader:
    """Return the reader that an interleave or a flat map is; `beside` is that of `listed`.

    Raises:
        UnknownReaderError: its list of files, or its files, are not understood.
    """
    function = function_of(operation)
    if function is None:
        raise UnknownReaderError("what it does with a file is not known")
    # `flat_map` reads file after file: a cycle of 1, whatever the block.
    in_turn = operation.op in INTERLEAVES and operation.op != "FlatMapDataset"
    try:
        rows = rows_of(operation.input) if operation.inputs else _listed(operation)
        pieces = _pieces(rows, function)
        # TensorFlow writes the cycle length in force also where the machine decided.
        cycle = operation.number("cycle_length") if in_turn else 1
        block = operation.number("block_length") if in_turn else 1
        if cycle < 1:
            raise UnknownReaderError(f"its cycle length is {cycle}")
        # The legacy op of `TFRecordDataset(num_parallel_reads=)` agrees with the interleave for
        # blocks of 1.
        if operation.op.startswith("Legacy") and block != 1:
            raise UnknownReaderError("experimental.parallel_interleave fills its slots its own way")
        found = listed(pieces, function, beside=beside)
    except (NoConstantError, DatasetError, UsageError) as error:
        raise UnknownReaderError(str(error)) from error
    # With one file a shuffle changes nothing.
    is_mixed, dataset = len(rows) > 1 and rows.shuffle is not None, found.dataset
    settings: dict[str, Any] = {}
    # Values equal to the defaults of the settings are left out. For counted files everything is
    # said, since no metadata gives a default.
    if dataset.is_counted or cycle != ReadSettings().cycle_length(ordered=dataset.ordered):
        settings["cycle"] = cycle
    if in_turn and (dataset.is_counted or block != DEFAULT_BLOCK):
        settings["block"] = block
    if is_mixed:
        settings["shuffle_files"] = True
        settings |= {} if rows.reshuffle else {"reshuffle": False}
    if rows.repeats:
        settings["repeat_files"] = True
    settings |= dict(found.sorting)
    # `shard` of the list of files is host_by="files".
    if rows.host is not None:
        settings |= {"host": rows.host, "host_by": "files"}
    return FoundReader(
        listed=found,
        settings=tuple(settings.items()),
        operations=(*rows.operations, operation),
        pair=rows.pair if is_mixed else None,
        is_tfds=_is_tfds(rows, function),
        # With one file there is nothing to mix.
        in_order="true" if len(rows) == 1 else in_order_of(operation),
    )


def in_order_of(operation: Operation) -> str:
    """Return whether an interleave keeps its order: "true", "false" or, by options, "default"."""
    if operation.op in ("InterleaveDataset", "FlatMapDataset", *_LINES):
        # Sequential kernels have no such attribute.
        return "true"
    if operation.op == "ParallelInterleaveDatasetV2":
        return "false" if operation.flag("sloppy") else "true"
    return operation.text("deterministic") or "default"


def _pieces(rows: Rows, function: FileFunction) -> Sequence[Piece]:
    indices = (function.path, function.skip, function.take)
    # Parameters behind the row's columns are captured values.
    if any(index is not None and index >= len(rows.columns) for index in indices):
        raise UnknownReaderError("the function that opens a file uses a value from outside it")
    if not len(rows):
        raise UnknownReaderError("the list of its files is empty")
    paths, skips, takes = (
        # A column that the function does not use has its default.
        [default] * len(rows) if index is None else rows.columns[index].tolist()
        for index, default in zip(indices, (None, function.skips, function.takes), strict=True)
    )
    return [
        Piece(path=os.fsdecode(path), skip=skip, take=take)
        for path, skip, take in zip(paths, skips, takes, strict=True)
    ]


def _is_tfds(rows: Rows, function: FileFunction) -> bool:
    """Return whether rows are those of TFDS's reader (core/reader.py, _Instruction)."""
    if len(rows.columns) != _TFDS_COLUMNS or function.path != 0:
        return False
    paths, names = rows.columns[:2]
    # TFDS's rows have the path and its base name in the first two columns.
    return all(os.path.basename(path) == name for path, name in zip(paths, names, strict=True))


# What a function does with a file: the body that `interleave` or `flat_map` applies to a row.
#
# TFDS's own (core/reader.py, _get_dataset_from_filename) and the `tf.data.TFRecordDataset` of a
# script are read by what they do, so that nothing in between is overlooked: a `filter` or another
# `shuffle` inside a file makes the order open.

_LINES_AT_ONCE = 1 << 13  # that are counted
_MOST_STEPS = 64  # of a body, from the file to what it returns


@dataclass(frozen=True, kw_only=True)
class FileFunction:
    """Which parameters of a function are the file, and how many of its records it skips and takes.

    skip, take: the index of a parameter, None where each file is read alike: without the first
        `skips` records, and no more than `takes`.
    opened: makes the records of a file by the function's own op, where no other way is known.
    """

    path: int
    skip: int | None = None
    take: int | None = None
    skips: int = 0
    takes: int | None = None
    compression: str = ""
    file_format: str = "tfrecord"
    opened: Callable[[str], Any] | None = None

    @property
    def reads_whole(self) -> bool:
        """Whether it reads all records of a file."""
        return (self.skip, self.take, self.skips, self.takes) == (None, None, 0, None)

    def num_records(self, path: str) -> int:
        """Return how many records the op yields of a file.

        Raises:
            DatasetError: it cannot be read so.
        """
        assert self.opened is not None
        try:
            batches = self.opened(path).batch(_LINES_AT_ONCE)
            return sum(len(tensorflow().nest.flatten(batch)[0]) for batch in batches)
        except tensorflow().errors.OpError as error:
            raise DatasetError(f"file {quoted(path, 200)} cannot be counted: {error}") from error


def file_function(function: Function) -> FileFunction | None:
    """Return what a function does with a file, None where it does anything that is not known."""
    # A function that returns several things is not just records of a file.
    if len(function.returned) != 1:
        return None
    return _read(function, function.returned[0], _MOST_STEPS)


def _read(function: Function, name: str, steps: int) -> FileFunction | None:
    op = function.op(name)
    if op is None or not steps:
        return None
    if op == "TFRecordDataset":
        return _records(function, name)
    if op in _LINES:
        inputs = function.inputs(name)
        parameter = _parameter(function, inputs[0])
        found = _lines(function.nodes[name], map(function.constant, inputs))
        return None if parameter is None or found is None else replace(found, path=parameter)
    if op == "FlatMapDataset":
        return _flat_map(function, name)
    # What is read beside the counter of `add_tfds_id`, which has no end.
    if op == "ZipDataset":
        inputs = function.inputs(name)
        is_numbered = len(inputs) == 2 and _is_counter(function, inputs[0])
        return _read(function, inputs[1], steps - 1) if is_numbered else None
    # A map inside the file changes an example, not the order.
    if op in ("MapDataset", "PrefetchDataset"):
        return _read(function, function.inputs(name)[0], steps - 1)
    if op in ("SkipDataset", "TakeDataset"):
        below, count = function.inputs(name)[:2]
        found = _read(function, below, steps - 1)
        # The count is a column of the row, as TFDS has it, or one for all files.
        number = function.constant(count)
        if found is None or (number is None and count not in function.parameters):
            return None
        # TFDS skips, then takes; the other way round counts otherwise.
        if op == "SkipDataset" and found.reads_whole:
            return _counting(function, found, count, number, "skip")
        if op == "TakeDataset" and (found.take, found.takes) == (None, None):
            return _counting(function, found, count, number, "take")
    return None


def _counting(
    function: Function, found: FileFunction, count: str, number: Any, name: str
) -> FileFunction:
    change: dict[str, Any] = (
        {name: function.parameters.index(count)} if number is None else {f"{name}s": int(number)}
    )
    return replace(found, **change)


# Ops that read lines, or pieces of one length, as what they are; the first argument is the files.
_LINES = {
    "TextLineDataset": "text",
    "CSVDatasetV2": "csv",
    "CSVDataset": "csv",
    "FixedLengthRecordDatasetV2": "fixed_length",
}


def _lines(node: Any, values: Iterable[Any]) -> FileFunction | None:
    """Return what such an op does with a file, None where TensorFlow computes an argument anew.

    values: its arguments, of which those of the files are not looked at.
    """
    arguments: dict[str, Any] = defaultdict(list)
    for name, value in zip(argument_names(node), values, strict=True):
        if name != "filenames" and value is None:
            return None
        # The default of each column is an argument of its own.
        arguments[name] = [*arguments[name], value] if name == "record_defaults" else value

    def opened(path: str) -> Any:
        tf = tensorflow()
        shapes = list(node.attr["output_shapes"].list.shape)
        kinds = node.attr["output_types"].list.type or [tf.string.as_datatype_enum]
        types = tuple(tf.TensorSpec(s, k) for s, k in zip(shapes or [()], kinds, strict=True))
        more = {"output_shapes": shapes} if "record_defaults" in arguments else {}
        made = getattr(tf.raw_ops, node.op)(**{**arguments, **more, "filenames": path})
        return tf.data.experimental.from_variant(made, types[0] if not more else types)

    return FileFunction(
        path=0,
        compression=arguments["compression_type"].item().decode(),
        file_format=_LINES[node.op],
        opened=opened,
    )


def _records(function: Function, name: str) -> FileFunction | None:
    path, compression = function.inputs(name)[:2]
    parameter, text = _parameter(function, path), function.constant(compression)
    if parameter is None or text is None:
        return None
    return FileFunction(path=parameter, compression=text.item().decode())


def _parameter(function: Function, name: str) -> int | None:
    """Return which parameter a tensor is, reshaped or not; None where it is none."""
    while function.op(name) == "Reshape":
        name = function.inputs(name)[0]
    return function.parameters.index(name) if name in function.parameters else None


def _flat_map(function: Function, name: str) -> FileFunction | None:
    """Return what `TFRecordDataset(path)`, or TFDS's reader of Parquet files, reads."""
    rows, *captured = function.inputs(name)
    called = function.called(name)
    if called is None:
        return None
    if function.op(rows) == "TensorSliceDataset":
        inner = file_function(called)
        # One path sliced: exactly one dataset input and nothing captured.
        path = _parameter(function, *function.inputs(rows))
        if inner is None or path is None or captured:
            return None
        # The inner function must read the whole file; the skip belongs to the outer one.
        return replace(inner, path=path) if inner.reads_whole and inner.path == 0 else None
    # TFDS's Parquet reader: `from_generator`, which is a flat_map over one element that captures
    # the path.
    if function.op(rows) == "TensorDataset" and called.generates and len(captured) == 1:
        path = _parameter(function, *captured)
        return None if path is None else FileFunction(path=path, file_format="parquet")
    return None


def _is_counter(function: Function, name: str) -> bool:
    # Dataset.counter is made of range, repeat, scan and map; what matters is that it repeats
    # without end.
    for op in ("MapDataset", "ScanDataset"):
        if function.op(name) != op:
            return False
        name = function.inputs(name)[0]
    if function.op(name) != "RepeatDataset":
        return False
    count = function.constant(function.inputs(name)[1])
    return count is not None and int(count) < 0


# The list of files that a reader opens, as rows, and what is done with the list before.


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


def rows_of(operation: Operation) -> Rows:
    """Return the rows that an operation lists.

    Raises:
        UnknownReaderError: it does what the settings of a reader cannot say.
    """
    # From the interleave down to the list, then back up: the steps are applied in the order of the
    # script.
    chain: list[Operation] = []
    here = operation
    while here.op not in ("TensorSliceDataset", "TensorDataset"):
        if here.op not in _STEPS:
            raise UnknownReaderError(f"{here.op} makes the list of its files")
        chain.append(here)
        here = here.input
    rows = _listed(here)
    for step in reversed(chain):
        found = _STEPS[step.op](rows, step)
        if found is None:
            raise UnknownReaderError(
                f"{call_name(step.op)} does to the list of its files what no settings say: a list "
                "is cut, then sharded once, then shuffled as a whole, then repeated without end"
            )
        rows = replace(found, operations=(*rows.operations, step))
    return rows


def _listed(operation: Operation) -> Rows:
    columns = tuple(constant(other) for other in operation.others)
    if operation.op in _LINES:
        columns = columns[:1]  # the files, of which a script may name one
        columns = tuple(column if column is None else column.reshape(-1) for column in columns)
    # Slices have one row for each entry, a single tensor is one row.
    rank = 0 if operation.op == "TensorDataset" else 1
    if not columns or any(column is None or column.ndim != rank for column in columns):
        raise UnknownReaderError("the names of its files are computed anew each time")
    # (n,) or () becomes (n,) or (1,).
    return Rows(columns=tuple(c.reshape(-1) for c in columns), operations=(operation,))


def _shard(rows: Rows, step: Operation) -> Rows | None:
    count, index = step.number("num_shards"), step.number("index")
    # A shard of one is no shard.
    if count == 1:
        return rows
    # Only in TFDS's order: shard, shuffle, repeat. Otherwise the file order would be another one.
    if rows.repeats or rows.shuffle is not None or rows.host is not None:
        return None
    return replace(rows, host=Host(index=index, count=count))


def _shuffle(rows: Rows, step: Operation) -> Rows | None:
    if rows.repeats or rows.shuffle is not None:
        return None
    # Files have to be shuffled as a whole: a smaller buffer gives an order that no setting
    # describes. Negative means all.
    if 0 <= step.number("buffer_size") < _num_left(rows):
        return None
    return replace(
        rows, shuffle=step, pair=kernel_pair(step), reshuffle=step.flag("reshuffle_each_iteration")
    )


def _num_left(rows: Rows) -> int:
    host = rows.host
    # What this host keeps: index, index + count, ..
    return len(rows) if host is None else len(range(host.index, len(rows), host.count))


def _repeat(rows: Rows, step: Operation) -> Rows | None:
    count = step.number("count")
    if count == 1:
        return rows
    # Only an endless repeat has a setting (`repeat_files`).
    return None if count >= 0 or rows.repeats else replace(rows, repeats=True)


def _cut(rows: Rows, step: Operation) -> Rows | None:
    count, is_take = step.number("count"), step.op == "TakeDataset"
    # take(-1) and skip(0) change nothing.
    if count < 0 if is_take else count == 0:
        return rows
    if rows.host is not None or rows.shuffle is not None or rows.repeats:
        return None
    # A negative skip drops all rows.
    kept = slice(count) if is_take else slice(count if count > 0 else len(rows), None)
    return replace(rows, columns=tuple(column[kept] for column in rows.columns))


_STEPS: Mapping[str, Callable[[Rows, Operation], Rows | None]] = {
    "ShardDataset": _shard,
    **dict.fromkeys(SHUFFLES, _shuffle),
    "RepeatDataset": _repeat,
    "TakeDataset": _cut,
    "SkipDataset": _cut,
    **dict.fromkeys(
        ("PrefetchDataset", "OptionsDataset", "AssertCardinalityDataset"), lambda rows, _: rows
    ),
}
