"""Which record files Hugging Face Datasets streams as tables, and which as rows."""

from __future__ import annotations

from shardctl.core.loaders.hugging_face.eras import era_of

# Formats whose readers yield Arrow tables, `_generate_tables`. WebDataset's yields rows; of the
# other formats `datasets` has no reader, so what streams them is a generator, which yields rows.
_OF_TABLES = frozenset({"parquet", "arrow"})


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
