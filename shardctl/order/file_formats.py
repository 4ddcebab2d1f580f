"""What can TFDS not read back of the files of a dataset, by their format?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import OTHER_FORMATS, PARQUET_BATCH
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError, UnpredictableOrderError
from shardctl.spec.host import HostMode
from shardctl.spec.subsplit import OPEN_SPLITS, Resolved, SplitRange

# TFDS core/file_adapters.py, ArrayRecordFileAdapter.make_tf_data.
NOT_BY_AS_DATASET = ("array_record",)
_WAYS_OUT = "read with as_data_source, where a sampler decides the order, or prepare as tfrecord"
_WAYS_OUT_OF_OTHERS = "read them with their own library, or write them as tfrecord"


def why_not_as_dataset(dataset: Dataset) -> str | None:
    """Return why `as_dataset` does not read a dataset, None where it does.

    >>> train = Split(name="train", shard_lengths=(3,))
    >>> why_not_as_dataset(Dataset(name="d", splits=(train,), file_format="array_record"))
    'as_dataset does not read array_record files: it raises NotImplementedError'
    """
    form = dataset.file_format
    if form in OTHER_FORMATS:
        return f"TFDS does not read {form} files"
    if form not in NOT_BY_AS_DATASET:
        return None
    return f"as_dataset does not read {form} files: it raises NotImplementedError"


def refuse_unreadable(dataset: Dataset) -> None:
    """Refuse what `tfds.ReadConfig` would have to do with files that `as_dataset` does not read.

    Raises:
        DatasetError: `as_dataset` does not read the format.
    """
    why = why_not_as_dataset(dataset)
    if why is not None:
        raise DatasetError(
            f"{dataset.title}: {why}, so tf.data has no pipeline; {_ways_out(dataset)}"
        )


def format_warnings(dataset: Dataset, ranges: Iterable[SplitRange]) -> Iterator[str]:
    """Yield what keeps TFDS from reading the ranges of a dataset as its metadata says.

    An order by metadata is a promise that these files may not keep.
    """
    why = why_not_as_dataset(dataset)
    if why is not None:
        of_others = "this is the order of tf.data over files of another format"
        yield f"{why}, so {of_others}; {_ways_out(dataset)}"
    for split in {piece.split.name: piece.split for piece in ranges}.values():
        why = why_short(dataset, split)
        if why is not None:
            yield f"{why}; as_dataset fails behind them. Count them with `shardctl verify --files`"


def _ways_out(dataset: Dataset) -> str:
    return _WAYS_OUT_OF_OTHERS if dataset.file_format in OTHER_FORMATS else _WAYS_OUT


def why_short(dataset: Dataset, split: Split) -> str | None:
    """Return what the Parquet files of a split hold less than its metadata says, if TFDS wrote.

    >>> train = Split(name="train", shard_lengths=(214, 90))
    >>> why_short(Dataset(name="d", splits=(train,), file_format="parquet"), train)
    'train: as TFDS writes it, a file of 214 examples holds 114 rows'
    """
    if dataset.file_format != "parquet" or dataset.is_counted:  # by its footers
        return None
    longest = max(split.shard_lengths, default=0)
    num_rows = num_rows_written(longest)
    if num_rows == longest:
        return None
    return (
        f"{split.name}: as TFDS writes it, a file of {longest:,} examples holds {num_rows:,} rows"
    )


def num_rows_written(length: int) -> int:
    """Return how many of a shard's examples TFDS 4.9.10 writes to its Parquet file.

    Batch k skips 100 k examples and takes up to 100.

    >>> num_rows_written(100), num_rows_written(214)
    (100, 114)
    """
    num_rows = batch = 0
    while length > 0:
        taken = max(0, min(PARQUET_BATCH, length - PARQUET_BATCH * batch))
        num_rows += taken
        length -= PARQUET_BATCH * (batch + 1)
        batch += 1
    return num_rows


# Does an answer depend on the order of splits that TFDS orders anew in each run?


def refuse_open_splits(resolved: Resolved) -> None:
    """Refuse `all` where each run reads the splits in an order of its own.

    For every answer that depends on the order of the splits; one that does not goes on with the
    warning that `resolved` has.

    Raises:
        UnpredictableOrderError: TFDS leaves the order of the splits open.
    """
    if resolved.spelled_out is not None:
        where = "" if resolved.spec == "all" else f"{quoted(resolved.spec)}: "
        raise UnpredictableOrderError(
            f"{where}{OPEN_SPLITS}; name them in the order in which they are to be read, as in "
            f"{quoted(resolved.spelled_out, 300)}"
        )


def refuse_open_hosts(resolved: Resolved, host_mode: HostMode, num_hosts: int) -> None:
    """Refuse `all` where the order of the splits decides how many examples a host gets.

    Only where hosts are given files in turn; of parts and of single examples each gets as many in
    any order.

    Raises:
        UnpredictableOrderError: TFDS leaves the order of the splits open.
    """
    if num_hosts > 1 and host_mode.whole_files:
        refuse_open_splits(resolved)
