"""Reads serialized examples from TFDS's files, as TFDS's own reader does before it decodes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.tfds_rules import TFDS_ID_SEPARATOR
from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.example_codes import ExampleCodes
from shardctl.spec.reads import Reads
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, without_autograph

# Chosen records are read in pieces from so many files at a time: of many records, since a call for
# each piece costs as much as some fifty small ones, and of few bytes beside a buffer.
_PIECE_BYTES = 1 << 22
_MOST_IN_PIECE, _FEWEST_IN_PIECE = 1024, 64
_FILES_AT_ONCE = 4
FEWER = "the files hold fewer examples than the metadata says"


def file_adapter(file_format: Any) -> Any:
    """Return what TFDS reads files of a format by, given as TFDS's own or as a text.

    Raises:
        KeyError, ValueError: TFDS knows no such format.
    """
    adapters = tensorflow_datasets("core.file_adapters")
    return adapters.ADAPTER_FOR_FORMAT[adapters.FileFormat.from_value(file_format)]


def path_of_shard(split: Split, shard: int) -> str:
    """Return where the file of a shard lies, its name alone where the folder is unknown."""
    folder, name = split.location(shard)
    return name if folder is None else os.path.join(folder, name)


def paths_of(reads: Reads) -> list[str]:
    """Return the path of the file of each row."""
    # Many rows read few files, so each path is made once.
    splits = reads.dataset.splits
    files = list(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    paths = {file: path_of_shard(splits[file[0]], file[1]) for file in set(files)}
    return [paths[file] for file in files]


@dataclass(frozen=True, kw_only=True)
class RecordReader:
    """The reading of TFDS's reader up to its decoding, with file orders that it has no option for.

    Elements are a serialized example (string scalar), or with `with_ids` that and its `tfds_id`.
    `codes` names the files in the ids as the uninterrupted pipeline does. Source: TFDS
    core/reader.py, _read_files.
    """

    builder: Any
    codes: ExampleCodes
    cycle: int
    block: int
    with_ids: bool = False

    def read(self, reads: Reads) -> Any:
        """Return the records that rows read, interleaved."""
        return self.interleaved(self.rows(reads))

    def rows(self, reads: Reads) -> Any:
        """Return the rows as a dataset of what `interleaved` opens."""
        # One element a row: (path, prefix of the ids, skip, take), each a scalar.
        return tensorflow().data.Dataset.from_tensor_slices(self.columns(reads))

    def interleaved(self, rows: Any) -> Any:
        """Return the records of rows, interleaved."""
        return self._interleaved(rows, self._of_file)

    def _interleaved(self, files: Any, of_file: Any) -> Any:
        tf = tensorflow()
        return files.interleave(
            without_autograph(of_file),
            cycle_length=self.cycle,
            block_length=self.block,
            # AUTOTUNE changes the speed only: with deterministic=True the order is that of the
            # sequential interleave.
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )

    def in_files(self, reads: Reads, num_rows: Int64s) -> Any:
        """Return the records of rows that are read together, interleaved as files.

        `num_rows` (int64[m]) says how many rows, one behind the other in a file, each opened file
        has; what lies between them is read and dropped.
        """
        # One row a file is what `read` does, without the filter below.
        if not len(num_rows) or int(num_rows.max()) == 1:
            return self.read(reads)
        tf = tensorflow()
        # Rows come in groups of `num_rows`, one group a file. `ends` are the exclusive ends of the
        # groups (int64[m]), so that ends - num_rows are their first rows.
        ends = np.cumsum(num_rows)
        first, last = reads.select(ends - num_rows), reads.select(ends - 1)
        # From the first row's start to the last row's end: the file is read through once.
        span = last.skip + last.take - first.skip
        # Rows become [begin, end) relative to the start of their group, as `enumerate` counts
        # below.
        begins = reads.skip - np.repeat(first.skip, num_rows)
        # Two ragged tensors (m groups, rows of each): begins and ends.
        runs = (
            tf.RaggedTensor.from_row_splits(column, np.append(0, ends))
            for column in (begins, begins + reads.take)
        )
        columns = self.columns(replace(first, take=span))
        files = tf.data.Dataset.from_tensor_slices((*columns, *runs))

        def of_file(path: Any, prefix: Any, skip: Any, take: Any, begin: Any, end: Any) -> Any:
            # A record is kept if any of the runs of its file holds its index.
            def is_wanted(index: Any, _: Any) -> Any:
                return tf.reduce_any((begin <= index) & (index < end))

            numbered = self._of_file(path, prefix, skip, take).enumerate()
            kept = numbered.filter(without_autograph(is_wanted))
            return kept.map(without_autograph(lambda _, record: record))

        return self._interleaved(files, of_file)

    def chosen(self, reads: Reads, codes: Int64s) -> Any:
        """Return chosen records in pieces (records[k], ranks[k]), each file opened once.

        `codes` is int64[q > 0], ascending, each the code of an example of a split of the dataset;
        a rank is the place of a record's code in it. One that is there twice comes twice. A record
        between two chosen ones is read and dropped: record files have no index.
        """
        tf = tensorflow()
        # `codes` ascend, so the examples of one file are neighbours, and `index` ascends within it.
        split, shard, index = self.codes.places(codes)
        # The first position of each file: where split or shard differs from the one before. -1 is
        # no split, so position 0 always counts.
        starts = np.flatnonzero(np.diff(split, prepend=-1) | np.diff(shard, prepend=-1))
        ends = np.append(starts[1:], len(codes))
        # One row for each file: from its first chosen example to its last.
        rows = Reads(
            files=reads.dataset,
            part=np.zeros(len(starts), np.int64),
            split=split[starts],
            shard=shard[starts],
            skip=index[starts],
            take=index[ends - 1] - index[starts] + 1,
        )
        size = piece_size(reads.dataset)
        # Ragged (files, chosen indices): the indices wanted in each file.
        wanted = tf.RaggedTensor.from_row_starts(index, starts, validate=False)
        files = tf.data.Dataset.from_tensor_slices((*self.columns(rows), starts, wanted))

        def of_file(path: Any, prefix: Any, skip: Any, take: Any, rank: Any, wanted: Any) -> Any:
            indices = tf.convert_to_tensor(wanted)

            # `records` are the records [first, first + len) of the file. The chosen ones among them
            # are found by two binary searches.
            def chosen_of(piece: Any, records: Any) -> Any:
                first = skip + piece * size
                bounds = [first, first + tf.shape(records, tf.int64)[0]]
                low, high = tf.unstack(tf.searchsorted(indices, bounds, out_type=tf.int64))
                here = indices[low:high]
                # `here - first` are positions within this piece.
                found = tf.gather(records, here - first)
                if self.with_ids:
                    found = found, self._tfds_ids(prefix, here)
                # Ranks count over all files: `rank` is that of the file's first chosen example.
                return found, rank + tf.range(low, high)

            records = self._records(path, skip, take)
            return records.batch(size).enumerate().map(without_autograph(chosen_of))

        # Not in order: whoever reads pieces goes by the ranks.
        return files.interleave(
            without_autograph(of_file),
            cycle_length=_FILES_AT_ONCE,
            num_parallel_calls=tf.data.AUTOTUNE,
        )

    def decode(self, records: Any, decoders: Any = None) -> Any:
        """Return the examples of records as TFDS decodes them, `tfds_id` among their features."""
        tf, tfds = tensorflow(), tensorflow_datasets()
        features = self.builder.info.features
        # As DatasetBuilder.as_dataset does: partial decoding chooses features first, and its
        # decoders are those of the chosen ones.
        if isinstance(decoders, tfds.decode.PartialDecoding):
            features = decoders.extract_features(features)
            decoders = decoders.decoders

        def example(serialized: Any, *tfds_id: Any) -> Any:
            decoded = features.deserialize_example(serialized, decoders=decoders)
            return {**decoded, "tfds_id": tfds_id[0]} if tfds_id else decoded

        return records.map(example, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)

    def columns(self, reads: Reads) -> tuple[Any, ...]:
        """Return rows as columns, a tensor each: what `rows` is made of."""
        tf = tensorflow()
        prefixes = [""] * len(reads)
        if self.with_ids and len(reads):
            # The code of each file's first example; its id without the number is the prefix of all
            # ids of the file.
            tfds_ids = self.codes.tfds_ids(self.codes.first_codes(reads) - reads.skip)
            prefixes = [name.rpartition(TFDS_ID_SEPARATOR)[0] for name in tfds_ids]
        # An explicit type: an empty list would be one of floats.
        texts = (np.array(column, object) for column in (paths_of(reads), prefixes))
        return (*(tf.constant(text, tf.string) for text in texts), reads.skip, reads.take)

    def _records(self, path: Any, skip: Any, take: Any) -> Any:
        adapter = file_adapter(self.builder.info.file_format)
        return adapter.make_tf_data(path).skip(skip).take(take)

    def _of_file(self, path: Any, prefix: Any, skip: Any, take: Any) -> Any:
        tf = tensorflow()
        records = self._records(path, skip, take)
        if not self.with_ids:
            return records

        # The ids count from the records that are skipped, as `add_tfds_id` does.
        indices = tf.data.Dataset.counter(start=skip)
        named = without_autograph(lambda index: self._tfds_ids(prefix, index))
        return tf.data.Dataset.zip((records, indices.map(named)))

    def _tfds_ids(self, prefix: Any, indices: Any) -> Any:
        tf = tensorflow()
        return tf.strings.join([prefix, tf.strings.as_string(indices)], separator=TFDS_ID_SEPARATOR)


@dataclass(frozen=True, kw_only=True)
class NumberedReader(RecordReader):
    """A reader without a builder, which numbers what it reads: (code, record).

    With `with_ids` elements are (code, id, record), as TFDS's reader has them.
    """

    builder: Any = None
    file_format: str = ""

    def columns(self, reads: Reads) -> tuple[Any, ...]:
        """Return rows as columns, with the code of the first example of each."""
        return (*super().columns(reads), self.codes.first_codes(reads))

    def _records(self, path: Any, skip: Any, take: Any) -> Any:
        return file_adapter(self.file_format).make_tf_data(path).skip(skip).take(take)

    def _of_file(self, path: Any, prefix: Any, skip: Any, take: Any, *first: Any) -> Any:
        data, (code,) = tensorflow().data, first
        records = super()._of_file(path, prefix, skip, take)
        numbers = data.Dataset.range(code, code + take)
        if not self.with_ids:
            return data.Dataset.zip((numbers, records))
        both = data.Dataset.zip((numbers, records))
        return both.map(without_autograph(lambda number, found: (number, *found[::-1])))


@dataclass(frozen=True, kw_only=True)
class OtherReader(NumberedReader):
    """The elements that `made` yields of a file after its first `skips`, as (code, texts)."""

    made: Callable[[Any], Any]
    skips: int = 0

    def _of_file(self, path: Any, prefix: Any, skip: Any, take: Any, *first: Any) -> Any:
        tf, (code,) = tensorflow(), first
        elements = self.made(path).skip(skip - self.skips).take(take)

        def texts(number: Any, element: Any) -> tuple[Any, ...]:
            return number, *map(tf.io.serialize_tensor, tf.nest.flatten(element))

        numbers = tf.data.Dataset.range(code, code + take)
        return tf.data.Dataset.zip((numbers, elements)).map(without_autograph(texts))


@dataclass(frozen=True, kw_only=True)
class RangeReader(RecordReader):
    """A range of codes in place of each file, for where nothing can be read; TFDS is not needed.

    Elements are codes, int64 scalars, which are left as they are where records are decoded.
    """

    builder: Any = None

    def decode(self, records: Any, decoders: Any = None) -> Any:
        """Return the records, which are examples already."""
        return records

    def columns(self, reads: Reads) -> tuple[Any, ...]:
        # The code of a file's first example, so that code = first + index; it stands where `path`
        # does, and the prefix is unused.
        firsts = self.codes.first_codes(reads) - reads.skip
        return firsts, np.zeros_like(firsts), reads.skip, reads.take

    def _records(self, path: Any, skip: Any, take: Any) -> Any:
        return tensorflow().data.Dataset.range(path + skip, path + skip + take)


def piece_size(dataset: Dataset) -> int:
    """Return how many records are a piece: where nothing is known of their size, a few."""
    total = sum(split.num_bytes or 0 for split in dataset.splits)
    num_examples = sum(split.num_examples for split in dataset.splits)
    # About _PIECE_BYTES of average examples, between the two bounds.
    that_fit = _PIECE_BYTES * num_examples // total if total else 0
    return min(max(that_fit, _FEWEST_IN_PIECE), _MOST_IN_PIECE)
