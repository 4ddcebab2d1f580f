"""The calls of Hugging Face Datasets that a chain is written with.

Those of a `Dataset` and of an `IterableDataset`; which arguments each of them takes, and what
becomes of the order, the rule says (`hugging_face.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from shardctl.base.arguments import Kind
from shardctl.errors import UsageError
from shardctl.stages import part as parts
from shardctl.stages import stages as of_all

_NO_SEED = "it has no seed, and so another order in each run: set its seed"


def _chosen(value: Any) -> str | tuple[int, ...]:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Sequence) and all(type(one) is int for one in value):
        return tuple(value)
    raise UsageError("a list of indices, a slice as '100:200', or a file of indices is needed")


Indices = Annotated[str | tuple[int, ...], Kind(take=_chosen, needed="indices", several="indices")]


class Select(parts.Stage):
    """`ds.select(indices)`: a list, a slice as a text, `'100:200'`, or a file, an index a line."""

    name = "select"
    effect = "keeps these examples, in this order"
    indices: Indices


class Shard(parts.Stage):
    """`ds.shard(num_shards, index, contiguous)`; without numbers those of the host.

    contiguous: None is the default of the version: False for a Dataset before 3.1.0, else True.
    """

    name = "shard"
    effect = "keeps one part of several: examples of a Dataset, shards of a stream"
    num_shards: parts.PositiveCount | None = None
    index: parts.Number | None = None
    contiguous: bool | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_pair(self.name, "num_shards", self.num_shards, "index", self.index)


class SplitByNode(parts.Stage):
    """`split_dataset_by_node(ds, rank, world_size, strategy)`, of the host by default."""

    name = "split_dataset_by_node"
    effect = "keeps the part of one node"
    rank: parts.Number | None = None
    world_size: parts.PositiveCount | None = None
    strategy: Literal["auto", "shards", "examples"] = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_pair(self.name, "world_size", self.world_size, "rank", self.rank)


def _check_pair(name: str, total: str, count: int | None, one: str, index: int | None) -> None:
    if (count is None) is not (index is None):
        raise UsageError(f"{name}: {total} and {one} are given together, or neither of them")
    if count is not None and index is not None and index >= count:
        raise UsageError(f"{name}: {one}={index} of {total}={count}: they count from 0")


class Shuffle(parts.Stage):
    """`ds.shuffle(seed)`, of a stream `ds.shuffle(seed, buffer_size, max_buffer_input_shards)`.

    set_epoch: False where the training loop never calls `set_epoch`, so that all epochs are alike.
    """

    name = "shuffle"
    effect = "permutes a Dataset; shuffles the shards of a stream, and mixes within a buffer"
    seed: parts.Number | None = None
    buffer_size: parts.PositiveCount | None = None
    max_buffer_input_shards: parts.PositiveCount | None = None
    set_epoch: bool | None = parts.argument(by_name=True, default=None)

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that it has no seed."""
        return _NO_SEED if self.seed is None else None


class TrainTestSplit(parts.Stage):
    """`ds.train_test_split(test_size, train_size, shuffle, seed=seed)[split]`."""

    name = "train_test_split"
    effect = "keeps one of two parts, of the shuffled examples"
    test_size: int | float | None = None
    train_size: int | float | None = None
    shuffle: bool = True
    seed: parts.Number | None = parts.argument(by_name=True, default=None)
    split: Literal["train", "test"] = parts.argument(by_name=True, default="train")

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that it shuffles without a seed."""
        return _NO_SEED if self.shuffle and self.seed is None else None


class Skip(parts.Stage):
    """`ds.skip(n)`."""

    name = "skip"
    effect = "drops the first examples; of a stream it keeps the order of the shards"
    n: parts.Number


class Take(parts.Stage):
    """`ds.take(n)`."""

    name = "take"
    effect = "ends after so many examples; of a stream it keeps the order of the shards"
    n: parts.Number

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many are taken."""
        return None if count is None else min(count, self.n)


class Repeat(parts.Stage):
    """`ds.repeat(num_times)`; None repeats a stream without end."""

    name = "repeat"
    effect = "repeats all that is before it"
    num_times: parts.Number | None = None

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many examples all repetitions have."""
        if self.num_times is None:
            return math.inf
        return None if count is None else count * self.num_times


class Batch(parts.Stage):
    """`ds.batch(batch_size, drop_last_batch)`: an element holds several examples."""

    name = "batch"
    effect = "puts examples together; keeps the order"
    batch_size: parts.PositiveCount
    drop_last_batch: bool = False


class Filter(of_all.Filter):
    """`ds.filter(f)`; `kept` is a file with what passes."""

    name = "filter"


class Map(parts.Stage):
    """`ds.map(f)`: keeps the order; what is behind it in a stream are rows, and no tables.

    batched: its function is given batches, of which it must yield as many examples.
    """

    name = "map"
    effect = "keeps the order; a stream yields rows behind it, and no tables"
    takes_anything = True
    parameters = (parts.FUNCTION, parts.value("batched", by_name=True))
    batched: bool = False

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return the stage; what else it is given changes no order."""
        return (cls(batched=bool(values.get("batched", False))),)


def _also(like: type[parts.Stage], *names: str) -> None:
    """Define the calls that differ from another one in their names only."""
    for name in names:
        said = f"`ds.{name}(..)`, to the order the same as `{like.name}`."
        own = {"name": name, "__doc__": said, "__module__": __name__}
        made = type(name.title().replace("_", ""), (like,), own)
        globals()[made.__name__] = made


_also(Map, "remove_columns", "rename_column", "rename_columns", "add_column")


class Columns(parts.Stage):
    """`ds.select_columns(..)`: keeps the order, and tables."""

    name = "select_columns"
    effect = "keeps the order"
    takes_anything = True

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return the stage; none of its arguments changes the order."""
        return (cls(),)


_also(Columns, "cast_column", "cast")


class FlattenIndices(Columns):
    """`ds.flatten_indices()`: keeps the order of a Dataset."""

    name = "flatten_indices"


class WithFormat(parts.Stage):
    """`ds.with_format(type)`: keeps the order; of tables, as "arrow", a map keeps these too."""

    name = "with_format"
    effect = "keeps the order"
    takes_anything = True
    type: str | None = None


class Reshard(parts.Stage):
    """`ds.reshard()`: of a generator nothing; Parquet files fall into their row groups."""

    name = "reshard"
    effect = "splits the shards of files further"


class ToIterable(parts.Stage):
    """`ds.to_iterable_dataset(num_shards)`: a stream of tables, in shards of nearly one length."""

    name = "to_iterable_dataset"
    effect = "streams a Dataset, in so many shards"
    num_shards: parts.PositiveCount = 1


class Combined(of_all.Mixture, is_call=False):
    """What combines several datasets, all of them streams or none."""

    inputs: tuple[parts.Pipeline, ...] = parts.argument("dsets", "datasets", takes="pipelines")


class Concatenate(Combined):
    """`concatenate_datasets(inputs)`, over rows."""

    name = "concatenate_datasets"
    effect = "reads one dataset after the other; a shuffle of streams mixes all their shards"

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return the sum of the inputs; one without end has none, whatever the others have."""
        if math.inf in others:
            return math.inf
        return None if None in others else sum(count for count in others if count is not None)


class Interleave(Combined):
    """`interleave_datasets(inputs, probabilities, seed, stopping_strategy=..)`."""

    name = "interleave_datasets"
    effect = "takes an example of each dataset in turn, or draws the next one"
    probabilities: parts.Weights | None = None
    seed: parts.Number | None = None
    stopping_strategy: Literal[
        "first_exhausted", "all_exhausted", "all_exhausted_without_replacement"
    ] = parts.argument(by_name=True, default="first_exhausted")

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.probabilities
        if given is not None and (len(given) != len(self.inputs) or abs(sum(given) - 1) > 1e-8):
            raise UsageError(f"{self.name}: a probability for each input is needed, in sum 1")

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that it draws without a seed."""
        return None if self.probabilities is None or self.seed is not None else _NO_SEED

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return whether there is no end, where that is certain."""
        all_end = self.stopping_strategy == "first_exhausted"
        ended = all if all_end else any
        return math.inf if ended(count == math.inf for count in others) else None
