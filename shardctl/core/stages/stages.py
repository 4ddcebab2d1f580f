"""A pipeline as a script writes it: a source, and the stages behind it in their order.

Every class is a call of tf.data and is named like it; the values are those of the call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

KernelPair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Shuffle:
    """`ds.shuffle(buffer, seed, reshuffle_each_iteration)`.

    buffer: elements held; -2 is the whole dataset (`tf.data.UNKNOWN_CARDINALITY`).
    seed: as in the call; a pair is the two seeds of the kernel, whatever the global seed is.
    """

    name: ClassVar = "shuffle"
    buffer: int
    seed: int | KernelPair | None = None
    reshuffle: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """`ds.repeat(count)`; None repeats for ever."""

    name: ClassVar = "repeat"
    count: int | None = None


@dataclass(frozen=True, kw_only=True)
class Batch:
    """`ds.batch(size, drop_remainder)`; padded_batch and ragged_batch group alike."""

    name: ClassVar = "batch"
    size: int
    drop_remainder: bool = False


@dataclass(frozen=True, kw_only=True)
class Unbatch:
    """`ds.unbatch()`."""

    name: ClassVar = "unbatch"


@dataclass(frozen=True, kw_only=True)
class Shard:
    """`ds.shard(num_shards, index)`: every num_shards-th element from `index` on."""

    name: ClassVar = "shard"
    num_shards: int
    index: int


@dataclass(frozen=True, kw_only=True)
class Take:
    """`ds.take(count)`; -1 takes all."""

    name: ClassVar = "take"
    count: int


@dataclass(frozen=True, kw_only=True)
class Skip:
    """`ds.skip(count)`; -1 skips all."""

    name: ClassVar = "skip"
    count: int


@dataclass(frozen=True, kw_only=True)
class Cache:
    """`ds.cache()` in memory: passes after the first whole one repeat it.

    A cache in a file keeps the order of an earlier run; it is an `Opaque` stage.
    """

    name: ClassVar = "cache"


@dataclass(frozen=True, kw_only=True)
class Map:
    """`ds.map(f)`: no other order, but it parts a shuffle and a repeat, and may read ahead.

    calls: `num_parallel_calls`, None for a map that reads an element when it is asked for one,
        "auto" for AUTOTUNE.
    deterministic: as in the call; False hands out what is ready first.
    """

    name: ClassVar = "map"
    calls: int | Literal["auto"] | None = None
    deterministic: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Prefetch:
    """`ds.prefetch(size)`: no other order, but it reads ahead; "auto" is AUTOTUNE."""

    name: ClassVar = "prefetch"
    size: int | Literal["auto"] = "auto"


@dataclass(frozen=True, kw_only=True)
class WithOptions:
    """`ds.with_options(options)`: parts a shuffle and a repeat; holds for the whole pipeline.

    deterministic: `options.deterministic`.
    fusion: `options.experimental_optimization.shuffle_and_repeat_fusion`.
    optimizations: `options.experimental_optimization.apply_default_optimizations`.
    warm_start: `options.experimental_warm_start`.
    """

    name: ClassVar = "with_options"
    deterministic: bool | None = None
    fusion: bool | None = None
    optimizations: bool | None = None
    warm_start: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Concatenate:
    """`ds.concatenate(other)`."""

    name: ClassVar = "concatenate"
    other: Pipeline


@dataclass(frozen=True, kw_only=True)
class Filter:
    """`ds.filter(predicate)`: how many pass depends on the data.

    kept: path of a file that names the examples that pass (a log of tfds_ids or ids, a line each,
        or a bool[n] .npy by id); None leaves the order open.
    """

    name: ClassVar = "filter"
    kept: str | None = None


@dataclass(frozen=True, kw_only=True)
class Opaque:
    """A stage whose order depends on data, on code or on files that metadata does not tell.

    call: as a script writes it, `flat_map`, `from_generator`, `cache(filename)`.
    reason: why its order is open, a clause.
    """

    name: ClassVar = "opaque"
    call: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Read:
    """TFDS's reader: what `tfds.load` or `builder.as_dataset` returns.

    spec: the subsplit; None is the one that the command or the call is given.
    data: a reference to the dataset; None is that of the command.
    settings: of this reader where they differ from those of the command, (name, value) of the table
        of settings, in its order.
    """

    name: ClassVar = "read"
    spec: str | None = None
    data: str | None = None
    settings: tuple[tuple[str, object], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Range:
    """`tf.data.Dataset.range(stop)`, or any source of `stop` elements in a fixed order."""

    name: ClassVar = "range"
    stop: int


@dataclass(frozen=True, kw_only=True)
class Values:
    """`tf.data.Dataset.from_tensor_slices(values)` of whole numbers, as choices are."""

    name: ClassVar = "values"
    values: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Zip:
    """`tf.data.Dataset.zip(inputs)`: an element holds one of each, in their order."""

    name: ClassVar = "zip"
    inputs: tuple[Pipeline, ...]


@dataclass(frozen=True, kw_only=True)
class SampleFromDatasets:
    """`tf.data.Dataset.sample_from_datasets(inputs, weights, seed, stop_on_empty_dataset, ..)`."""

    name: ClassVar = "sample_from_datasets"
    inputs: tuple[Pipeline, ...]
    weights: tuple[float, ...] | None = None
    seed: int | KernelPair | None = None
    stop_on_empty: bool = False
    rerandomize: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ChooseFromDatasets:
    """`tf.data.Dataset.choose_from_datasets(inputs, choices, stop_on_empty_dataset)`."""

    name: ClassVar = "choose_from_datasets"
    inputs: tuple[Pipeline, ...]
    choices: Pipeline
    stop_on_empty: bool = True


Source = Read | Range | Values | Zip | SampleFromDatasets | ChooseFromDatasets | Opaque
Stage = (
    Shuffle
    | Repeat
    | Batch
    | Unbatch
    | Shard
    | Take
    | Skip
    | Cache
    | Map
    | Prefetch
    | WithOptions
    | Concatenate
    | Filter
    | Opaque
)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A source and the stages behind it, in the order of the script.

    >>> Pipeline(stages=(Shuffle(buffer=1000, seed=7), Repeat(count=3))).source
    Read(spec=None, data=None, settings=())
    """

    source: Source = Read()
    stages: tuple[Stage, ...] = ()
