"""Which record files Hugging Face Datasets streams as tables, and which as rows."""

from __future__ import annotations

# Formats whose readers yield Arrow tables, `_generate_tables`. WebDataset's yields rows; of the
# other formats `datasets` has no reader, so what streams them is a generator, which yields rows.
_OF_TABLES = frozenset({"parquet", "arrow"})


def reads_tables(file_format: str | None) -> bool:
    """Return whether files of a format are streamed as tables.

    >>> reads_tables("parquet"), reads_tables("tfrecord")
    (True, False)
    """
    return file_format in _OF_TABLES
