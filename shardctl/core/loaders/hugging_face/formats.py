"""Which record files Hugging Face Datasets streams as tables, and which as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardctl.core.loaders.hugging_face.eras import (
    DEFAULT_BUFFER,
    DEFAULT_INPUT_SHARDS,
    MAKE_ROWS,
    era_of,
)
from shardctl.core.phrase import phrase
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.core.loaders.asked import Asked

# Formats whose readers yield Arrow tables, `_generate_tables`. WebDataset's yields rows; of the
# other formats `datasets` has no reader, so what streams them is a generator, which yields rows.
_OF_TABLES = frozenset({"parquet", "arrow"})
_OF_ROWS = frozenset({"webdataset"})


def of_tables(asked: Asked) -> bool:
    """Return whether what reads the files makes tables: as asked, else as it does of the format.

    The versions that count the examples of a host from each table anew (`strides_tables`) make
    tables of WebDataset's rows too, as of all rows whose features are known.
    """
    if asked.arrow is not None:
        return asked.arrow
    if asked.file_format == "webdataset":
        return era_of(asked.version).strides_tables
    return asked.file_format in _OF_TABLES


def streams_tables(asked: Asked) -> bool:
    """Return whether what is shuffled are tables: a call before the shuffle may make rows."""
    return of_tables(asked) and asked.before_shuffle not in MAKE_ROWS


def is_read(file_format: str) -> bool:
    """Return whether `datasets` has a reader of a format of record files."""
    return file_format in _OF_TABLES | _OF_ROWS


def check_tables(asked: Asked) -> None:
    """Refuse a shuffle whose order tells tables from rows, of files that `datasets` cannot read.

    Raises:
        UsageError: names the switch that says which.
    """
    said = asked.arrow is not None or asked.before_shuffle in MAKE_ROWS
    if said or not asked.file_format or is_read(asked.file_format) or not _tells_tables(asked):
        return
    raise UsageError(
        phrase(
            "datasets has no reader of {} files; the same examples in files of its own are "
            "shuffled otherwise as tables than as rows: {arrow=True} for tables (Parquet and Arrow "
            "files, to_iterable_dataset), {arrow=False} for rows (a generator)",
            asked.file_format,
        )
    )


def assumed_of_streams(asked: Asked) -> tuple[str, ...]:
    """Return what is taken for granted of a stream, a sentence each."""
    found = list[str]()
    stated = asked.arrow is not None or asked.before_shuffle is not None
    if not stated and of_tables(asked) and _tells_tables(asked):
        found.append(
            phrase(
                "no {} stands before shuffle: they make rows of tables, which is another order, "
                "{before_shuffle=map}; {arrow=True} leaves this out",
                " or ".join((", ".join(MAKE_ROWS[:-1]), MAKE_ROWS[-1])),
            )
        )
    if asked.before_shuffle == "filter":
        found.append("filter keeps every example, since metadata does not tell which it drops")
    if asked.num_hosts > 1:
        found.append(
            "hosts share the stream by split_dataset_by_node; a Trainer or Accelerator that is "
            "given the stream shares it in another way"
        )
    return tuple(found)


def _tells_tables(asked: Asked) -> bool:
    """Return whether a shuffle of tables has another order than one of rows."""
    if asked.seed is None or not era_of(asked.version).by_halves:
        return False
    buffer = DEFAULT_BUFFER if asked.buffer is None else asked.buffer
    rows = buffer // (asked.input_shards or DEFAULT_INPUT_SHARDS)
    if rows < 2:
        return False  # tables of one row
    # The buffer takes whole tables: of one shard these are the same examples where they fit.
    fits = buffer % rows == 0 == (buffer - buffer // 2) % rows
    return len(asked.lengths_of_shards) > 1 or not fits
