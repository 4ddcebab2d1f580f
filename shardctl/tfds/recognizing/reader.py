"""The reader of a pipeline: files opened in turn, as TFDS's or as a script's own interleave."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.stages.fields import KernelPair
from shardctl.core.tfds_rules import DEFAULT_BLOCK
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.recognizing.file_function import FileFunction, file_function
from shardctl.tfds.recognizing.files import Listed, Piece, listed
from shardctl.tfds.recognizing.graph import NoConstantError, Operation
from shardctl.tfds.recognizing.rows import Rows, UnknownRowsError, rows_of

INTERLEAVES = (
    "ParallelInterleaveDatasetV4",
    "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV2",
    "InterleaveDataset",
    "FlatMapDataset",
    "LegacyParallelInterleaveDatasetV2",  # TFRecordDataset(files, num_parallel_reads=N)
)
_TFDS_COLUMNS = 5  # of a row of TFDS's reader: path, name, prefix of ids, skip, take


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundReader:
    """A reader with its settings, of which `pair` is that of the file shuffle.

    operations: what it is made of in the graph, from the list of files up.
    is_tfds: whether it is TFDS's own, behind which its decoding belongs to it.
    in_order: the attribute `deterministic` of its interleave, "default" where options decide.
    decodes_in_order: whether TFDS's decoding hands out examples as it got them.
    asserts_cardinality: whether TFDS tells TensorFlow how many examples there are.
    """

    listed: Listed
    settings: tuple[tuple[str, Any], ...]
    operations: tuple[Operation, ...]
    shuffle: Operation | None = None
    pair: KernelPair | None = None
    is_tfds: bool = False
    in_order: str = "true"
    decodes_in_order: bool = True
    asserts_cardinality: bool = False

    @property
    def dataset(self) -> Dataset:
        """The dataset that it reads."""
        return self.listed.dataset


class UnknownReaderError(Exception):
    """Something that reads files in a way that the settings of a reader do not say; says which."""


def reads_files(operation: Operation) -> bool:
    """Return whether an operation opens files, in whatever way."""
    if operation.op not in INTERLEAVES or operation.function is None:
        return False
    return file_function(operation.function) is not None


def found_reader(operation: Operation) -> FoundReader:
    """Return the reader that an interleave or a flat map is.

    Raises:
        UnknownReaderError: its list of files, or its files, are not understood.
    """
    function = None if operation.function is None else file_function(operation.function)
    if function is None:
        raise UnknownReaderError("what it does with a file is not known")
    try:
        rows = rows_of(operation.input)
        pieces = _pieces(rows, function)
        cycle = _cycle(operation)
        block = 1 if operation.op == "FlatMapDataset" else operation.number("block_length")
        if operation.op.startswith("Legacy") and block != 1:
            raise UnknownRowsError("experimental.parallel_interleave fills its slots its own way")
        found = listed(
            pieces,
            file_format="parquet" if function.is_parquet else "tfrecord",
            compression=function.compression,
        )
    except (UnknownRowsError, NoConstantError, DatasetError, UsageError) as error:
        raise UnknownReaderError(str(error)) from error
    is_mixed = len(rows) > 1 and rows.shuffle is not None
    settings = {
        **_cycle_settings(cycle, found.dataset),
        **_block_settings(operation, block, found.dataset),
        **({"shuffle_files": True} if is_mixed else {}),
        **({"reshuffle": False} if is_mixed and not rows.reshuffle else {}),
        **({"repeat_files": True} if rows.repeats else {}),
        **dict(found.sorting),
        **({} if rows.host is None else {"host": rows.host, "host_by": "files"}),
    }
    return FoundReader(
        listed=found,
        settings=tuple(settings.items()),
        operations=(*rows.operations, operation),
        shuffle=rows.shuffle if is_mixed else None,
        pair=rows.pair if is_mixed else None,
        is_tfds=_is_tfds(rows, function),
        in_order="true" if len(rows) == 1 else _in_order(operation),
    )


def _in_order(operation: Operation) -> str:
    if operation.op in ("InterleaveDataset", "FlatMapDataset"):
        return "true"
    if operation.op == "ParallelInterleaveDatasetV2":
        return "false" if operation.flag("sloppy") else "true"
    return operation.text("deterministic") or "default"


def _pieces(rows: Rows, function: FileFunction) -> Sequence[Piece]:
    paths = _column(rows, function.path)
    skips = [0] * len(rows) if function.skip is None else _column(rows, function.skip)
    takes = [None] * len(rows) if function.take is None else _column(rows, function.take)
    if not len(rows):
        raise UnknownRowsError("the list of its files is empty")
    return [
        Piece(path=os.fsdecode(path), skip=int(skip), take=None if take is None else int(take))
        for path, skip, take in zip(paths, skips, takes, strict=True)
    ]


def _column(rows: Rows, index: int) -> Any:
    if index >= len(rows.columns):
        raise UnknownRowsError("the function that opens a file uses a value from outside it")
    return rows.columns[index]


def _cycle(operation: Operation) -> int:
    """Return the cycle length in force, which TensorFlow writes also where the machine decided."""
    if operation.op == "FlatMapDataset":
        return 1
    cycle = operation.number("cycle_length")
    if cycle < 1:
        raise UnknownRowsError(f"its cycle length is {cycle}")
    return cycle


def _cycle_settings(cycle: int, dataset: Dataset) -> dict[str, Any]:
    default = ReadSettings().cycle_length(ordered=dataset.ordered)
    return {} if cycle == default and not dataset.is_counted else {"cycle": cycle}


def _block_settings(operation: Operation, block: int, dataset: Dataset) -> dict[str, Any]:
    is_default = block == DEFAULT_BLOCK and not dataset.is_counted
    return {} if is_default or operation.op == "FlatMapDataset" else {"block": block}


def _is_tfds(rows: Rows, function: FileFunction) -> bool:
    """Return whether rows are those of TFDS's reader (core/reader.py, _Instruction)."""
    if len(rows.columns) != _TFDS_COLUMNS or function.path != 0:
        return False
    paths, names = rows.columns[:2]
    return all(os.path.basename(path) == name for path, name in zip(paths, names, strict=True))
