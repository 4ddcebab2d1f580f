"""Resolves a spec, and warns where TFDS or tf.data read its files otherwise than metadata says."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain, pairwise

from shardctl.base.text import counted, quoted
from shardctl.base.tfds_rules import OTHER_FORMATS, PARQUET_BATCH
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError, UnpredictableOrderError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HostMode
from shardctl.spec.subsplit import OPEN_SPLITS, Resolved, SplitRange, default_spec, resolve_subsplit

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
    # What was counted in the files themselves is true already; only TFDS's metadata claims more.
    if dataset.file_format != "parquet" or dataset.is_counted:  # by its footers
        return None
    # A shard loses examples if it is longer than one batch, so the longest shows whether any does.
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
        # The batches that TFDS writes shrink the rest by more than they take, so examples are lost
        # from the second batch on.
        taken = max(0, min(PARQUET_BATCH, length - PARQUET_BATCH * batch))
        num_rows += taken
        length -= PARQUET_BATCH * (batch + 1)
        batch += 1
    return num_rows


# Does an answer depend on the order of splits that TFDS orders anew in each run?


def refuse_open_splits(resolved: Resolved) -> None:
    """Refuse `all` where each run reads the splits in another order.

    For every answer that depends on the order of the splits; one that does not continues with the
    warning that `resolved` has.

    Raises:
        UnpredictableOrderError: TFDS reads the splits in a random order.
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
        UnpredictableOrderError: TFDS reads the splits in a random order.
    """
    if num_hosts > 1 and host_mode.whole_files:
        refuse_open_splits(resolved)


def resolved_spec(dataset: Dataset, spec: str | None) -> Resolved:
    """Return what a spec selects, with what TFDS cannot read back of its files as warnings.

    None is `train`, else the only split.
    """
    resolved = resolve_subsplit(default_spec(dataset) if spec is None else spec, dataset)
    warnings = tuple(format_warnings(dataset, resolved.ranges))
    return replace(resolved, warnings=(*resolved.warnings, *warnings)) if warnings else resolved


def as_read_by(resolved: Resolved, settings: ReadSettings) -> Resolved:
    """Return what a spec selects; what TFDS's reader makes of its files is no affair of others."""
    if settings.reader.on_tf_data:
        return resolved
    # Compared as texts: warnings carry no kind, and these are made by the same function.
    of_tfds = set(format_warnings(resolved.dataset, resolved.ranges))
    kept = tuple(warning for warning in resolved.warnings if warning not in of_tfds)
    return replace(resolved, warnings=kept)


def listing_warnings(
    dataset: Dataset, ranges: Iterable[SplitRange], settings: ReadSettings
) -> Iterator[str]:
    """Yield where a script that lists the files of a dataset reads them in another order.

    Files without metadata are mostly read so, and `list_files(..).interleave(TFRecordDataset, ..)`
    is the order of TFDS's reader over the same files but for two things: it sorts the paths by
    their bytes, and it gives a file without examples its turn.
    """
    if not dataset.is_counted:
        return
    splits = {piece.split.name: piece.split for piece in ranges}
    for split in splits.values():
        out_of_order = None if settings.file_order is not None else _first_unsorted(split)
        if out_of_order is not None:
            before, after = out_of_order
            yield (
                f"{split.name}: files are in the order of their numbers, {quoted(before)} before "
                f"{quoted(after)}; tf.data's list_files and sorted() have them the other way "
                "round: a list in their order, as --file-order FILE, is what such a script reads"
            )
        if split.num_empty_shards:
            number = split.num_empty_shards
            has = "has" if number == 1 else "have"
            yield (
                f"{split.name}: {counted(number, 'file')} {has} no examples; TFDS's reader skips "
                "such files, but the order of tf.data's list_files differs; move them away"
            )


def _first_unsorted(split: Split) -> tuple[str, str] | None:
    """Return the first two files in a row whose paths are not sorted by their bytes, if any are.

    Numbers of one width, as all names made of a pattern have, are.
    """
    # A part without names is made of a pattern with numbers of one width, which sort as they count.
    pairs = chain.from_iterable(pairwise(part.names or ()) for part in split.files)
    return next((pair for pair in pairs if os.fsencode(pair[0]) > os.fsencode(pair[1])), None)
