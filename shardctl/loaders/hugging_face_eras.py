"""What changed the streaming order of `datasets` from one version to another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from shardctl.base.phrase import refused
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.loaders.loader_sequence import LoaderConfig


# Of `IterableDataset.shuffle`, in all versions that have them.
DEFAULT_BUFFER = 1000
DEFAULT_INPUT_SHARDS = 10


@dataclass(frozen=True, kw_only=True)
class Era:
    """The versions of `datasets` from `since` on that yield one order.

    says: what changed, for people.
    epochs_add_up: `set_epoch` shuffles the shuffled shards once more, those of a dataset that
        nothing shuffles too; before, it changed the seed of the shuffle.
    worker_seeds: of the shuffle buffers in worker processes: all the same, from the state of the
        generator, or drawn from it.
    interleave: up to `max_buffer_input_shards` shards fill the buffer in turn, never, made so by
        `shuffle` for all processes together, or by each process for the shards it reads.
    by_halves: the buffer yields half of what it holds, not one example for one.
    has_strategy: `split_dataset_by_node` takes a strategy.
    """

    since: str
    says: str
    epochs_add_up: bool = False
    worker_seeds: Literal["same", "state", "drawn"] = "drawn"
    interleave: Literal["never", "together", "apart"] = "never"
    by_halves: bool = False
    has_strategy: bool = False


# Source: datasets/iterable_dataset.py of each version, `IterableDataset.shuffle`,
# `_prepare_ex_iterable_for_iteration`, `shift_ex_examples_rngs`, `BufferShuffledExamplesIterable`.
ERAS: tuple[Era, ...] = (
    Era(
        since="3.0.0",
        says="one shard after the other through a buffer that gives one example for one",
        worker_seeds="same",
    ),
    Era(
        since="4.4.0",
        says="each worker process shuffles with a seed of its own",
        worker_seeds="state",
    ),
    Era(
        since="4.6.0",
        says="set_epoch shuffles the shards anew, and workers have other seeds",
        epochs_add_up=True,
    ),
    Era(
        since="5.0.0",
        says="up to 10 shards in turn fill the buffer",
        epochs_add_up=True,
        interleave="together",
    ),
    Era(
        since="5.1.0",
        says="the buffer yields half of what it holds at a time",
        epochs_add_up=True,
        interleave="apart",
        by_halves=True,
        has_strategy=True,
    ),
)


def era_of(version: str) -> Era:
    """Return the era of a version of `datasets`; that of the oldest for what is older still.

    >>> era_of("4.8.5").since, era_of("5.2").since
    ('4.6.0', '5.1.0')
    """
    number = _number(version)
    # The newest era that had begun; versions are compared as tuples.
    return next((era for era in reversed(ERAS) if number >= _number(era.since)), ERAS[0])


def _number(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with; a pre-release counts as its release."""
    begin = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in begin[0].split(".")] if begin else []
    return tuple(parts + [0] * (3 - len(parts)))


def changed_between(old: str, new: str, pipeline: Mapping[str, object]) -> str:
    """Return how the order of a pipeline, as documents have it, changed from a version to another.

    >>> changed_between("4.8.5", "5.0.1", {"buffer": 16, "shuffle_seed": 1})
    'the order of a stream changed at 5.0.0 (up to 10 shards in turn fill the buffer)'
    >>> changed_between("4.8.5", "5.0.1", {})  # read by index
    ''
    """
    streams = pipeline.get("streaming")
    # A buffer implies streaming, as in `LoaderConfig.streams`.
    if streams is None:
        streams = pipeline.get("buffer") is not None
    if not streams or pipeline.get("shuffle_seed") is None:
        return ""
    # In either direction: an upgrade and a downgrade change the order alike.
    first, last = sorted((_number(old), _number(new)))
    changes = [f"{era.since} ({era.says})" for era in ERAS if first < _number(era.since) <= last]
    if not changes:
        return ""
    listed = " and ".join(filter(None, [", ".join(changes[:-1]), changes[-1]]))
    return f"the order of a stream changed at {listed}"


# Which record files Hugging Face Datasets streams as tables, and which as rows.

# Formats whose readers yield Arrow tables, `_generate_tables`. WebDataset's yields rows; of the
# other formats `datasets` has no reader, so what streams them is a generator, which yields rows.
_OF_TABLES = frozenset({"parquet", "arrow"})
_OF_ROWS = frozenset({"webdataset"})


def of_tables(config: LoaderConfig) -> bool:
    """Return whether what reads the files makes tables: as configured, else by the format."""
    return config.file_format in _OF_TABLES if config.arrow is None else config.arrow


def is_read(file_format: str) -> bool:
    """Return whether `datasets` has a reader of a format of record files."""
    return file_format in _OF_TABLES | _OF_ROWS


def refused_format(file_format: str) -> UsageError:
    """Return the error of a shuffle that tells tables from rows, of files it cannot read."""
    return refused(
        "datasets has no reader of {} files, and shuffles tables and rows differently; give "
        "{arrow=True} for tables (Parquet, Arrow, to_iterable_dataset), {arrow=False} for rows",
        file_format,
    )


def tells_tables(buffer: int, rows: int, num_shards: int) -> bool:
    """Return whether a shuffle of tables has another order than one of rows.

    rows: of a table that fills the buffer.
    """
    if rows < 2:
        return False  # tables of one row
    # The buffer takes whole tables: of one shard these are the same examples where they fit.
    fits = buffer % rows == 0 == (buffer - buffer // 2) % rows
    return num_shards > 1 or not fits


# What is taken for granted of a stream that settings describe.
ROWS = (
    "no map, filter, remove_columns, rename_column, rename_columns or add_column stands before "
    "shuffle: they make rows of tables, which is another order, --no-arrow; --arrow leaves this out"
)
BY_NODE = (
    "hosts share the stream by split_dataset_by_node; a Trainer or Accelerator that is given the "
    "stream shares it in another way"
)
