"""The file instructions of a plan file, checked one by one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shardctl.core.arrays import Int64s, constant
from shardctl.core.instructions.named_files import NamedFiles
from shardctl.core.instructions.reads import Reads
from shardctl.core.text import choices
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.lists.record_columns import RecordColumns

_RECORD = ("filename", "split", "skip", "take", "examples_in_shard")


def read_instructions(value: object, names: Mapping[str, int], what: str) -> Reads:
    """Return a list of file instructions; `names` are the splits with their places.

    Raises:
        DatasetError: no list, a record with other fields, a split that is not there, or a skip and
            a take that do not fit the file.
    """
    if isinstance(value, RecordColumns):
        found = _of_columns(value, names, what)
        if found is not None:
            return found
    records = fields.items(value, what)
    filenames: list[str] = []
    columns = np.empty((len(records), 5), np.int64)
    with_shards = bool(records) and isinstance(records[0], dict) and "shard_index" in records[0]
    keys = (*_RECORD, "shard_index") if with_shards else _RECORD
    for number, record in enumerate(records):
        if not isinstance(record, dict) or tuple(record) != keys:
            raise DatasetError(
                f"{what}, entry {number}: {choices(keys)} are needed, in this order, not "
                f"{choices(record) if isinstance(record, dict) else fields.shown(record)}"
            )
        name, split, *numbers = record.values()
        if not (isinstance(name, str) and isinstance(split, str) and split in names):
            raise DatasetError(
                f"{what}, entry {number}: file {fields.shown(name)} of split "
                f"{fields.shown(split)}; the splits are {choices(names)}"
            )
        for key, count in zip(keys[2:], numbers, strict=True):
            if type(count) is not int or not 0 <= count < 1 << 63:
                fields.count(count, f"{what}, entry {number}: {key}")
        filenames.append(name)
        columns[number] = (names[split], *(numbers if with_shards else (*numbers, -1)))
    split_, skip, take, lengths, shards = np.ascontiguousarray(columns.T)
    _check_fit(skip, take, lengths, what)
    return Reads(
        files=NamedFiles(
            split_names=tuple(names),
            names=filenames,
            lengths=lengths,
            shards=shards if with_shards else None,
        ),
        part=np.zeros(len(records), np.int64),
        split=split_,
        shard=np.arange(len(records)),
        skip=skip,
        take=take,
    )


def _of_columns(records: RecordColumns, names: Mapping[str, int], what: str) -> Reads | None:
    """Return records as they are written; None where one is of another kind, or of no split."""
    filenames, splits = records.texts("filename"), records.texts("split")
    skip, take, lengths = (_column(records, key) for key in _RECORD[2:])
    shards = _column(records, "shard_index")
    keys = _RECORD if shards is None else (*_RECORD, "shard_index")
    if filenames is None or splits is None or skip is None or take is None or lengths is None:
        return None
    split_names, split = splits.coded()
    places = [names.get(name, -1) for name in split_names]
    if tuple(records.columns) != keys or -1 in places:
        return None
    _check_fit(skip, take, lengths, what)
    count = len(records)
    return Reads(
        files=NamedFiles(
            split_names=tuple(names), names=filenames.names(), lengths=lengths, shards=shards
        ),
        part=constant(0, count),
        split=(
            constant(places[0], count) if len(places) == 1 else np.array(places, np.int64)[split]
        ),
        shard=np.arange(count),
        skip=skip,
        take=take,
    )


def _column(records: RecordColumns, key: str) -> Int64s | None:
    counts = records.counts(key)
    return None if counts is None else counts.packed().int64s()


def _check_fit(skip: Int64s, take: Int64s, lengths: Int64s, what: str) -> None:
    wrong = np.flatnonzero((skip > lengths) | (take > lengths - skip))
    if wrong.size:
        at = int(wrong[0])
        raise DatasetError(
            f"{what}, entry {at}: skip {skip[at]} and take {take[at]} do not fit a file of "
            f"{lengths[at]} examples"
        )
