"""Which record files Hugging Face Datasets streams as tables, and which as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardctl.core.loaders.hugging_face.eras import DEFAULT_BUFFER, DEFAULT_INPUT_SHARDS, era_of
from shardctl.core.phrase import phrase

if TYPE_CHECKING:
    from shardctl.core.loaders.asked import Asked

# Formats whose readers yield Arrow tables, `_generate_tables`. WebDataset's yields rows; of the
# other formats `datasets` has no reader, so what streams them is a generator, which yields rows.
_OF_TABLES = frozenset({"parquet", "arrow"})
_OF_ROWS = frozenset({"webdataset"})


def reads_tables(file_format: str, version: str) -> bool:
    """Return whether a version streams files of a format as tables.

    The versions that count the examples of a host from each table anew (`strides_tables`) make
    tables of WebDataset's rows too, as of all rows whose features are known.

    >>> reads_tables("parquet", "5.2.0"), reads_tables("tfrecord", "5.2.0")
    (True, False)
    """
    if file_format == "webdataset":
        return era_of(version).strides_tables
    return file_format in _OF_TABLES


def assumed_of_rows(asked: Asked, file_format: str) -> str | None:
    """Return what is taken for granted where tables would have another order, else None.

    It is said of formats that `datasets` has no reader of, where nobody asked for rows.
    """
    if asked.arrow or file_format in _OF_TABLES | _OF_ROWS:
        return None
    if not asked.streams or asked.seed is None or not era_of(asked.version).by_halves:
        return None
    buffer = DEFAULT_BUFFER if asked.buffer is None else asked.buffer
    if buffer < 2 * (asked.input_shards or DEFAULT_INPUT_SHARDS):
        return None  # tables of one row
    return phrase(
        "datasets has no reader of {} files, so a generator is supposed to stream their rows; "
        "{arrow=True} is the order of tables, as of Parquet and Arrow files and "
        "to_iterable_dataset, {arrow=False} leaves this out",
        file_format,
    )
