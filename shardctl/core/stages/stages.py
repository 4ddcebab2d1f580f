"""A pipeline as a script writes it: a source, and the stages behind it in their order.

Every class is a call of tf.data and is named like it; the values are those of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar, Literal, cast, get_args

from shardctl.core.arguments.checked import keep_fields
from shardctl.core.secrets import public_url
from shardctl.core.stages.fields import (
    Buffer,
    Calls,
    Cardinality,
    Count,
    CountOrAll,
    Held,
    OwnSettings,
    PositiveCount,
    Seed,
    Times,
    Weights,
    Word,
)
from shardctl.core.text import counted, printable
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.errors import UsageError

_LONGEST_SHOWN = 300  # characters of a pipeline, in a repr


class _Call:
    """A call whose fields are checked and kept as Python's own."""

    name: ClassVar[str]

    def __post_init__(self) -> None:
        try:
            keep_fields(self)
        except UsageError as error:  # these are no arguments of a function or of a command
            raise UsageError(f"{self.name}: {error}") from None


@dataclass(frozen=True, kw_only=True)
class Shuffle(_Call):
    """`ds.shuffle(buffer, seed, reshuffle_each_iteration)`.

    buffer: elements held; -2 is the whole dataset (`tf.data.UNKNOWN_CARDINALITY`).
    seed: as in the call; a pair is the two seeds of the kernel, whatever the global seed is.
    """

    name: ClassVar[str] = "shuffle"
    buffer: Buffer
    seed: Seed | None = None
    reshuffle: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Repeat(_Call):
    """`ds.repeat(count)`; None repeats for ever."""

    name: ClassVar[str] = "repeat"
    count: Times | None = None


@dataclass(frozen=True, kw_only=True)
class Batch(_Call):
    """`ds.batch(size, drop_remainder)`; padded_batch and ragged_batch group alike."""

    name: ClassVar[str] = "batch"
    size: PositiveCount
    drop_remainder: bool = False


@dataclass(frozen=True, kw_only=True)
class Unbatch(_Call):
    """`ds.unbatch()`."""

    name: ClassVar[str] = "unbatch"


@dataclass(frozen=True, kw_only=True)
class Shard(_Call):
    """`ds.shard(num_shards, index)`: every num_shards-th element from `index` on."""

    name: ClassVar[str] = "shard"
    num_shards: PositiveCount
    index: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index >= self.num_shards:
            raise UsageError(
                f"shard: index={self.index} of num_shards={self.num_shards}: shards count from 0"
            )


@dataclass(frozen=True, kw_only=True)
class Take(_Call):
    """`ds.take(count)`; -1 takes all."""

    name: ClassVar[str] = "take"
    count: CountOrAll


@dataclass(frozen=True, kw_only=True)
class Skip(_Call):
    """`ds.skip(count)`; -1 skips all."""

    name: ClassVar[str] = "skip"
    count: CountOrAll


@dataclass(frozen=True, kw_only=True)
class Cache(_Call):
    """`ds.cache()` in memory: passes after the first whole one repeat it.

    A cache in a file keeps the order of an earlier run; it is an `Opaque` stage.
    """

    name: ClassVar[str] = "cache"


@dataclass(frozen=True, kw_only=True)
class Map(_Call):
    """`ds.map(f)`: no other order, but it parts a shuffle and a repeat, and may read ahead.

    calls: `num_parallel_calls`, None for a map that reads an element when it is asked for one,
        "auto" for AUTOTUNE.
    deterministic: as in the call; False hands out what is ready first.
    """

    name: ClassVar[str] = "map"
    calls: Calls | None = None
    deterministic: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Prefetch(_Call):
    """`ds.prefetch(size)`: no other order, but it reads ahead; "auto" is AUTOTUNE."""

    name: ClassVar[str] = "prefetch"
    size: Held = "auto"


@dataclass(frozen=True, kw_only=True)
class AssertCardinality(_Call):
    """`ds.apply(tf.data.experimental.assert_cardinality(count))`: -1 is without end.

    It changes no order itself, but decides when a cache behind it counts as filled.
    """

    name: ClassVar[str] = "assert_cardinality"
    count: Cardinality


@dataclass(frozen=True, kw_only=True)
class WithOptions(_Call):
    """`ds.with_options(options)`: parts a shuffle and a repeat; holds for the whole pipeline.

    deterministic: `options.deterministic`.
    fusion: `options.experimental_optimization.shuffle_and_repeat_fusion`.
    optimizations: `options.experimental_optimization.apply_default_optimizations`.
    warm_start: `options.experimental_warm_start`.
    """

    name: ClassVar[str] = "with_options"
    deterministic: bool | None = None
    fusion: bool | None = None
    optimizations: bool | None = None
    warm_start: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Concatenate(_Call):
    """`ds.concatenate(other)`."""

    name: ClassVar[str] = "concatenate"
    other: Pipeline


@dataclass(frozen=True, kw_only=True)
class Filter(_Call):
    """`ds.filter(predicate)`: how many pass depends on the data.

    kept: path of a file that names the examples that pass (a log of tfds_ids or ids, a line each,
        or a bool[n] .npy by id); None leaves the order open.
    """

    name: ClassVar[str] = "filter"
    kept: Word | None = None


@dataclass(frozen=True, kw_only=True)
class Opaque(_Call):
    """A stage whose order depends on data, on code or on files that metadata does not tell.

    call: as a script writes it, `flat_map`, `from_generator`, `cache(filename)`.
    reason: why its order is open, a clause.
    """

    name: ClassVar[str] = "opaque"
    call: Word
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Read(_Call):
    """TFDS's reader: what `tfds.load` or `builder.as_dataset` returns.

    spec: the subsplit; None is the one that the command or the call is given.
    data: a reference to the dataset; None is that of the command.
    settings: of this reader where they differ from those of the command, (name, value) of the table
        of settings, in its order.
    assert_cardinality: `ReadConfig.assert_cardinality`; without it TensorFlow does not know how
        many examples there are, as of files that a script reads itself.
    listed: the script lists the files itself, `list_files(data) | interleave(TFRecordDataset)`:
        all files that match are read, in the order of their paths by bytes.
    """

    name: ClassVar[str] = "read"
    spec: Word | None = None
    data: Word | None = None
    settings: OwnSettings = ()
    assert_cardinality: bool = True
    listed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data is not None:  # passwords of a URL stay out of all that is written of stages
            object.__setattr__(self, "data", public_url(self.data))

    @property
    def has_cardinality(self) -> bool:
        """Whether TensorFlow is told how many examples there are."""
        return self.assert_cardinality and not self.listed


@dataclass(frozen=True, kw_only=True)
class Range(_Call):
    """`tf.data.Dataset.range(stop)`, or any source of `stop` elements in a fixed order."""

    name: ClassVar[str] = "range"
    stop: Count


@dataclass(frozen=True, kw_only=True)
class Values(_Call):
    """`tf.data.Dataset.from_tensor_slices(values)` of whole numbers, as choices are."""

    name: ClassVar[str] = "values"
    values: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Zip(_Call):
    """`tf.data.Dataset.zip(inputs)`: an element holds one of each, in their order."""

    name: ClassVar[str] = "zip"
    inputs: tuple[Pipeline, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_inputs(self)


@dataclass(frozen=True, kw_only=True)
class SampleFromDatasets(_Call):
    """`tf.data.Dataset.sample_from_datasets(inputs, weights, seed, stop_on_empty_dataset, ..)`.

    weights_dtype: what TensorFlow makes of the weights, "float32" of Python's own numbers and
        "float64" of a NumPy array of these; it decides one choice in some ten million.
    """

    name: ClassVar[str] = "sample_from_datasets"
    inputs: tuple[Pipeline, ...]
    weights: Weights | None = None
    seed: Seed | None = None
    stop_on_empty: bool = False
    rerandomize: bool | None = None
    weights_dtype: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_inputs(self)
        if self.weights is not None and len(self.weights) != len(self.inputs):
            raise UsageError(
                f"{self.name}: {counted(len(self.weights), 'weight')} of "
                f"{counted(len(self.inputs), 'input')}: one each is needed"
            )


@dataclass(frozen=True, kw_only=True)
class ChooseFromDatasets(_Call):
    """`tf.data.Dataset.choose_from_datasets(inputs, choices, stop_on_empty_dataset)`."""

    name: ClassVar[str] = "choose_from_datasets"
    inputs: tuple[Pipeline, ...]
    choices: Pipeline
    stop_on_empty: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_inputs(self)


@dataclass(frozen=True, kw_only=True)
class Shared(_Call):
    """A dataset object that a script uses more than once, as in `zip((ds, ds.map(f)))`.

    Each iterator of a shuffle takes the next seeds of the dataset object that it belongs to, and a
    cache is filled once: two uses of one object read otherwise than two objects made alike. All
    sources `Shared` of one label in a pipeline are one object, so their pipelines are the same.
    """

    name: ClassVar[str] = "shared"
    label: Word
    pipeline: Pipeline


def _check_inputs(source: Zip | SampleFromDatasets | ChooseFromDatasets) -> None:
    if not source.inputs:
        raise UsageError(f"{source.name}: an input, or several, is needed")


Source = Read | Range | Values | Zip | SampleFromDatasets | ChooseFromDatasets | Shared | Opaque
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
    | AssertCardinality
    | WithOptions
    | Concatenate
    | Filter
    | Opaque
)


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A source and the stages behind it, in the order of the script.

    >>> Pipeline(stages=(Shuffle(buffer=1000, seed=7), Repeat(count=3))).source
    Read(spec=None, data=None, settings=(), assert_cardinality=True, listed=False)
    """

    source: Source = Read()
    stages: tuple[Stage, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "stages", tuple(self.stages))
        if not isinstance(self.source, get_args(Source)):
            raise UsageError(f"{type(self.source).__name__}: no source of a pipeline")
        for stage in self.stages:
            if not isinstance(stage, get_args(Stage)):
                raise UsageError(f"{type(stage).__name__}: no stage of a pipeline")
        _check_ends(self)

    def __repr__(self) -> str:
        parts = (self.source, *self.stages)
        names = (part.call if isinstance(part, Opaque) else part.name for part in parts)
        return f"<Pipeline {printable(' | '.join(names), _LONGEST_SHOWN)}>"


def never_ends(pipeline: Pipeline) -> bool:
    """Return whether a pipeline goes on for ever, as far as its stages tell.

    A repeat of nothing ends at once, and whether there is nothing is not known here.

    >>> never_ends(Pipeline(stages=(Repeat(), Batch(size=2))))
    True
    >>> never_ends(Pipeline(stages=(Repeat(), Take(count=5))))
    False
    """
    endless = _source_never_ends(pipeline.source)
    for stage in pipeline.stages:
        endless = _goes_on(stage, endless)
    return endless


def _source_never_ends(source: Source) -> bool:
    match source:
        case Zip():
            return all(map(never_ends, source.inputs))
        case SampleFromDatasets():
            of = all if source.stop_on_empty else any
            return of(map(never_ends, source.inputs))
        case ChooseFromDatasets():
            return never_ends(source.choices) and all(map(never_ends, source.inputs))
        case Shared():
            return never_ends(source.pipeline)
        case _:
            return False


def _goes_on(stage: Stage, endless: bool) -> bool:
    match stage:
        case Repeat():
            return endless or stage.count is None
        case Take():
            return endless and stage.count == -1
        case Concatenate():
            return endless or never_ends(stage.other)
        case Opaque():
            return False
        case _:
            return endless


def _check_ends(pipeline: Pipeline) -> None:
    """Refuse a stage that reads to an end which never comes before it hands out anything."""
    endless = _source_never_ends(pipeline.source)
    for stage in pipeline.stages:
        if endless and isinstance(stage, Shuffle) and stage.buffer == WHOLE_DATASET:
            raise UsageError(
                "shuffle: buffer=-2 (the whole dataset) of what repeats without end: the buffer "
                "never fills; give a number, or shuffle before the repeat"
            )
        if endless and isinstance(stage, Skip) and stage.count == -1:
            raise UsageError("skip: count=-1 (all) of what repeats without end: nothing comes")
        endless = _goes_on(stage, endless)


# The readers of a pipeline, in the order in which a script writes them.


def sources_of(pipeline: Pipeline, *, seen: set[str] | None = None) -> Iterator[Source]:
    """Yield the sources of examples, each as often as it is there; not those of choices.

    What is shared is there once; `seen` are the labels of it that came before.

    >>> one = Pipeline(source=Read(spec="train"))
    >>> two = Pipeline(source=Zip(inputs=(one, one)), stages=(Concatenate(other=one),))
    >>> len(list(sources_of(two)))
    3
    """
    source, seen = pipeline.source, set() if seen is None else seen
    if isinstance(source, Shared):
        if source.label not in seen:
            seen.add(source.label)
            yield from sources_of(source.pipeline, seen=seen)
    elif isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        for part in source.inputs:
            yield from sources_of(part, seen=seen)
    else:
        yield source
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            yield from sources_of(stage.other, seen=seen)


def parts_of(pipeline: Pipeline, *, choices: bool = False) -> Iterator[Source | Stage]:
    """Yield all sources and stages, a whole before its parts; those of choices if wanted."""
    source = pipeline.source
    yield source
    if isinstance(source, Shared):
        yield from parts_of(source.pipeline, choices=choices)
    if isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        for part in source.inputs:
            yield from parts_of(part, choices=choices)
    if choices and isinstance(source, ChooseFromDatasets):
        yield from parts_of(source.choices, choices=True)
    for stage in pipeline.stages:
        yield stage
        if isinstance(stage, Concatenate):
            yield from parts_of(stage.other, choices=choices)


def readers_of(pipeline: Pipeline) -> list[Read]:
    """Return the readers, each as often as it is there."""
    return [source for source in sources_of(pipeline) if isinstance(source, Read)]


# A pipeline with some of its parts changed, wherever in it they are.


def with_changed(
    pipeline: Pipeline,
    *,
    read: Callable[[Read], Read] | None = None,
    kept: Callable[[str], str] | None = None,
    part: Callable[[Source | Stage], Source | Stage] | None = None,
) -> Pipeline:
    """Return a pipeline with every reader as `read` changes it; None leaves them as they are.

    kept: what becomes of the name of a file that says which examples pass a filter.
    part: what becomes of each source and stage, inner ones first.

    >>> pipeline = Pipeline(source=Read(spec="a"), stages=(Concatenate(other=Pipeline()),))
    >>> changed = with_changed(pipeline, read=lambda read: Read(spec="b"))
    >>> changed.source.spec, changed.stages[0].other.source.spec
    ('b', 'b')
    """

    def whole(pipeline: Pipeline) -> Pipeline:
        changed = source(pipeline.source)
        return Pipeline(source=changed, stages=tuple(map(stage, pipeline.stages)))

    def source(given: Source) -> Source:
        changed = inner(given)
        return changed if part is None else cast(Source, part(changed))

    def inner(given: Source) -> Source:
        match given:
            case Read():
                return given if read is None else read(given)
            case Shared():
                return replace(given, pipeline=whole(given.pipeline))
            case Zip() | SampleFromDatasets():
                return replace(given, inputs=tuple(map(whole, given.inputs)))
            case ChooseFromDatasets():
                inputs = tuple(map(whole, given.inputs))
                return replace(given, inputs=inputs, choices=whole(given.choices))
            case _:
                return given

    def stage(given: Stage) -> Stage:
        if isinstance(given, Concatenate):
            given = replace(given, other=whole(given.other))
        if isinstance(given, Filter) and given.kept is not None and kept is not None:
            given = replace(given, kept=kept(given.kept))
        return given if part is None else cast(Stage, part(given))

    return whole(pipeline)


def with_seeds(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose shuffles and mixtures without a seed have 1, 2, ... for theirs.

    What is shared is one object, whose seed is the same wherever it stands.

    >>> with_seeds(Pipeline(stages=(Shuffle(buffer=9), Shuffle(buffer=9, seed=7)))).stages
    (Shuffle(buffer=9, seed=1, reshuffle=None), Shuffle(buffer=9, seed=7, reshuffle=None))
    """
    seeds = count(1)
    shared: dict[str, Source | Stage] = {}

    def part(given: Source | Stage) -> Source | Stage:
        if isinstance(given, Shared):
            return shared.setdefault(given.label, given)
        if isinstance(given, Shuffle | SampleFromDatasets) and given.seed is None:
            return replace(given, seed=next(seeds))
        return given

    return with_changed(pipeline, part=part)
