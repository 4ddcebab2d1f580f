"""A pipeline as a script writes it: a source, and the stages behind it in their order.

Every class is a call of tf.data and is named like it; the values are those of the call. It has all
that is peculiar to the call: its arguments, what it does to order and length, what makes it
nondeterministic, and the call of tf.data that it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from shardctl.base.arguments import text
from shardctl.base.text import counted, printable, public_url
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UsageError
from shardctl.stages import part as parts

_READY_FIRST = "deterministic=False yields in order of completion"
_LONGEST_SHOWN = 300  # characters of a pipeline, in a repr


SET_A_SEED = ": set its seed, or tf.random.set_seed"


def _why_unseeded(seed: object, global_seed: int | None) -> str | None:
    # With two zeros the kernel takes its seeds from the machine.
    if seed == (0, 0) or (seed is None and global_seed is None):
        return f"it has no seed, and so another order in each run{SET_A_SEED}"
    return None


class Shuffle(parts.Stage):
    """`ds.shuffle(buffer, seed, reshuffle_each_iteration)`.

    buffer: elements held; -2 is the whole dataset (`tf.data.UNKNOWN_CARDINALITY`).
    seed: as in the call; a pair is the two seeds of the kernel, whatever the global seed is.
    """

    name = "shuffle"
    effect = "mixes within its buffer; anew for each iterator unless reshuffle=False"
    buffer: parts.Buffer = parts.argument("buffer_size")
    seed: parts.Seed | None = None
    reshuffle: bool | None = parts.argument("reshuffle_each_iteration", default=None)

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that the machine seeds it; a buffer of one yields what it has just read."""
        return None if self.buffer == 1 else _why_unseeded(self.seed, global_seed)

    def in_tf(self) -> parts.TfCall | None:
        """Return the call, whose buffer for all is a constant."""
        # The number -2 means the same, but a script that people read has the name.
        found = super().in_tf()
        if found is None or self.buffer != WHOLE_DATASET:
            return found
        return replace(found, by_place=(parts.UNKNOWN_CARDINALITY,))


class Repeat(parts.Stage):
    """`ds.repeat(count)`; None repeats without end."""

    name = "repeat"
    effect = "repeats all that is before it"
    count: parts.Times | None = None

    @property
    def is_noop(self) -> bool:
        """Whether it is `repeat(1)`."""
        return self.count == 1

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many elements all repetitions have."""
        # An endless repeat of nothing ends at once.
        if count == 0:
            return 0
        if self.count is None:
            return math.inf
        return None if count is None else count * self.count


class Batch(parts.Stage):
    """`ds.batch(size, drop_remainder)`; padded_batch and ragged_batch group alike."""

    name = "batch"
    effect = "puts elements together; keeps the order"
    parameters = (
        parts.value("size", "batch_size"),
        parts.value("drop_remainder"),
        parts.value("calls", "num_parallel_calls"),
        parts.value("deterministic"),
    )
    size: parts.PositiveCount
    drop_remainder: bool = False

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return a batch; one with num_parallel_calls reads ahead like such a map."""
        ahead = {name: values.pop(name) for name in ("calls", "deterministic") if name in values}
        batch = cls(**values)
        # A batch with threads is a parallel map as far as an order shows it, so it is written as
        # two stages.
        return (batch, Map(**ahead)) if ahead.get("calls") is not None else (batch,)

    def whole_length(self, count: int) -> int:
        """Return the number of batches."""
        return count // self.size if self.drop_remainder else -(-count // self.size)


class Window(parts.Stage):
    """`ds.window(size, shift, stride, drop_remainder)`, and the `flat_map` that batches a window.

    shift: elements from the start of a window to that of the next; None is `size`.
    """

    name = "window"
    is_plain = False
    effect = "makes a batch of each window; keeps the order"
    size: parts.PositiveCount
    shift: parts.PositiveCount | None = None
    stride: parts.PositiveCount = 1
    drop_remainder: bool = False

    @property
    def span(self) -> int:
        """The elements from the first of a window to its last."""
        return (self.size - 1) * self.stride + 1

    def whole_length(self, count: int) -> int:
        """Return the number of windows."""
        # A window begins wherever an element is left; a whole one needs its last element too.
        missing = self.span - 1 if self.drop_remainder else 0
        return -(-max(count - missing, 0) // (self.shift or self.size))


class Unbatch(parts.Stage):
    """`ds.unbatch()`."""

    name = "unbatch"
    effect = "takes batches apart; keeps the order"


class Shard(parts.Stage):
    """`ds.shard(num_shards, index)`: every num_shards-th element from `index` on."""

    name = "shard"
    effect = "keeps every n-th element"
    num_shards: parts.PositiveCount
    index: parts.Number

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.index >= self.num_shards:
            raise UsageError(
                f"shard: index={self.index} of num_shards={self.num_shards}: shards count from 0"
            )

    @property
    def is_noop(self) -> bool:
        """Whether it is `shard(1, 0)`."""
        return self.num_shards == 1

    def whole_length(self, count: int) -> int:
        """Return how many are kept."""
        return len(range(self.index, count, self.num_shards))

    def in_tf(self) -> parts.TfCall | None:
        """Return the call, its numbers by their names."""
        return parts.TfCall(method=self.name, by_name=parts.said_of(self))


class Take(parts.Stage):
    """`ds.take(count)`; -1 takes all."""

    name = "take"
    effect = "ends after so many elements"
    count: parts.CountOrAll

    @property
    def is_noop(self) -> bool:
        """Whether it is `take(-1)`."""
        return self.count < 0

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many are taken."""
        return count if count is None or self.count < 0 else min(count, self.count)


class Skip(parts.Stage):
    """`ds.skip(count)`; -1 skips all."""

    name = "skip"
    effect = "drops the first elements"
    count: parts.CountOrAll

    @property
    def is_noop(self) -> bool:
        """Whether it is `skip(0)`."""
        return self.count == 0

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many are left."""
        return 0 if self.count < 0 else super().length(count)

    def whole_length(self, count: int) -> int:
        """Return how many are left of so many."""
        return max(count - self.count, 0)


class Cache(parts.Stage):
    """`ds.cache()` in memory: passes after the first whole one repeat it.

    A cache in a file keeps the order of an earlier run; it is an `Opaque` stage.
    """

    name = "cache"
    effect = "later passes repeat the first whole one"
    parameters = (parts.value("filename"),)

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return a cache in memory, or what one in a file is."""
        # tf.data takes "" for a cache in memory.
        filename = values.get("filename")
        if filename is None or text(filename) == "":
            return (cls(),)
        return (Opaque.known(CACHE_IN_FILE),)


class Map(parts.Stage):
    """`ds.map(f)`: keeps the order, stops the fusion of shuffle and repeat, may read ahead.

    calls: `num_parallel_calls`, None for a map that reads an element when it is asked for one,
        "auto" for AUTOTUNE.
    deterministic: as in the call; False yields in order of completion.
    """

    name = "map"
    effect = "keeps the order; stops TensorFlow from fusing shuffle and repeat"
    parameters = (
        parts.FUNCTION,
        parts.value("calls", "num_parallel_calls"),
        parts.value("deterministic"),
    )
    takes_function = True
    keeps_order = True
    calls: parts.Calls | None = None
    deterministic: bool | None = None

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that threads yield in order of completion, where they do."""
        # Without num_parallel_calls TensorFlow keeps the order (map_parallelization.cc).
        # One thread completes elements in the order in which it takes them.
        if self.calls in (None, 1):
            return None
        # The argument of the call counts before the option of the pipeline.
        said = deterministic if self.deterministic is None else self.deterministic
        return _READY_FIRST if said is False else None

    @property
    def as_run(self) -> parts.Stage:
        """One that reads ahead, in order."""
        return Map(calls="auto", deterministic=True) if self.calls is None else self


class Scan(parts.Stage):
    """`ds.scan(initial_state, f)`: one element of each, which depends on those before it."""

    name = "scan"
    is_plain = False
    effect = "keeps the order; each result depends on earlier elements, too"
    parameters = (parts.value("", "initial_state", takes="code"), parts.FUNCTION)
    keeps_order = True


class Prefetch(parts.Stage):
    """`ds.prefetch(size)`: no other order, but it reads ahead; "auto" is AUTOTUNE."""

    name = "prefetch"
    effect = "keeps the order; reads ahead"
    keeps_order = True
    size: parts.Held = parts.argument("buffer_size", default="auto")

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return a prefetch; None is AUTOTUNE."""
        return (cls(**{name: given for name, given in values.items() if given is not None}),)


class AssertCardinality(parts.Stage):
    """`ds.apply(tf.data.experimental.assert_cardinality(count))`: -1 is without end.

    It changes no order itself, but decides when a cache behind it counts as filled.
    """

    name = "assert_cardinality"
    is_plain = False
    effect = "keeps the order; stops TensorFlow from fusing shuffle and repeat"
    keeps_order = True
    count: parts.Cardinality = parts.argument("expected_cardinality")


class WithOptions(parts.Stage):
    """`ds.with_options(options)`: holds for the whole pipeline; stops fusion where it stands.

    deterministic: `deterministic`.
    fusion: `options.experimental_optimization.shuffle_and_repeat_fusion`.
    optimizations: `options.experimental_optimization.apply_default_optimizations`.
    warm_start: `options.experimental_warm_start`.
    """

    name = "with_options"
    effect = "stops TensorFlow from fusing shuffle and repeat; holds for the whole pipeline"
    is_plain = False
    keeps_order = True
    # What each field is among `tf.data.Options`.
    attributes: ClassVar[Mapping[str, str]] = {
        "deterministic": "deterministic",
        "fusion": "experimental_optimization.shuffle_and_repeat_fusion",
        "optimizations": "experimental_optimization.apply_default_optimizations",
        "warm_start": "experimental_warm_start",
    }
    deterministic: bool | None = parts.argument(by_name=True, default=None)
    fusion: bool | None = parts.argument("shuffle_and_repeat_fusion", by_name=True, default=None)
    optimizations: bool | None = parts.argument(
        "apply_default_optimizations", by_name=True, default=None
    )
    warm_start: bool | None = parts.argument("experimental_warm_start", by_name=True, default=None)


class Concatenate(parts.Stage):
    """`ds.concatenate(other)`."""

    name = "concatenate"
    is_plain = False
    effect = "continues with another dataset"
    other: Pipeline = parts.argument("dataset", takes="pipeline")

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return how many elements both have."""
        return _sum((count, *others))


class ByData(parts.Stage, is_call=False):
    """A stage whose elements depend on what is in the examples.

    kept: path of a file with what it does to each example: what `shardctl inspect --scan` wrote;
        of a filter it may be a list of those that pass, a tfds_id or an id a line. Without one the
        order is nondeterministic.
    """

    is_plain = False
    takes_anything = True
    kept: parts.Word | None = parts.argument(by_name=True, default=None)

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return the stage, or what it is without a scan."""
        kept = values.get("kept")
        if cls.name in WHY_OPEN and not kept:
            return (Opaque.known(cls.name),)
        if isinstance(kept, str):  # with a login it would be shown, and saved
            values = {**values, "kept": public_url(kept)}
        return super().made(values)

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> parts.Count:
        """Return None: the data decides, but of what has no end."""
        return count if count == math.inf else None


class Filter(ByData):
    """`ds.filter(predicate)`: how many pass depends on the data."""

    name = "filter"
    effect = "drops elements by what is in them"
    parameters = (parts.value("", "predicate", takes="code"), parts.value("kept", by_name=True))
    takes_anything = False

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that neither a scan nor a list says which pass, where that is so."""
        if self.kept is not None:
            return None
        return (
            "how many elements pass depends on the data: shardctl inspect --scan finds out, or "
            "name those that do with kept="
        )


class TakeWhile(ByData):
    """`ds.take_while(predicate)`: its end depends on the data."""

    name = "take_while"
    effect = "ends before the first element that fails its predicate"

    def length(self, count: parts.Count, others: Sequence[parts.Count] = ()) -> None:
        """Return None: it may end what has no end."""


class FlatMap(ByData):
    """`ds.flat_map(f)` and `ds.unbatch()`, whose rows an example, or a window of them, decides."""

    name = "flat_map"
    effect = "makes elements by what is in each example"


class GroupByWindow(ByData):
    """`ds.group_by_window(..)` and `ds.bucket_by_sequence_length(..)`."""

    name = "group_by_window"
    effect = "groups elements by a key of each"


CACHE_IN_FILE = "cache(filename)"
# What makes the order nondeterministic: why, and the names of the calls.
_BY = {
    "it keeps the order of the run that wrote its files": (CACHE_IN_FILE, "snapshot"),
    "how many elements come of each depends on the data": ("flat_map", "interleave"),
    "which elements come, and when, depends on the data": (
        *("group_by_window", "bucket_by_sequence_length", "take_while", "unique"),
        *("ignore_errors", "rejection_resample", "group_by_reducer"),
    ),
    "the script's own code decides what it yields": ("apply", "from_generator"),
    "what it lists is read by code; list_files('data/*', seed=7) | interleave(cycle_length=4) has "
    "an order": ("list_files",),
    "its files are named by code; TFRecordDataset('data/*') has an order": ("TFRecordDataset",),
    "what it reads is no dataset of TFDS": ("TextLineDataset",),
    "what was saved in several parts is read in the order of its own function": ("load",),
    "its elements are random numbers": ("random",),
}
WHY_OPEN: Mapping[str, str] = {name: reason for reason, names in _BY.items() for name in names}


class Opaque(parts.Stage, parts.Source):
    """A stage whose order depends on data, on code or on files that metadata does not tell.

    call: as a script writes it, `flat_map`, `from_generator`, `cache(filename)`.
    reason: why its order is nondeterministic, a clause.
    """

    name = "opaque"
    is_plain = False
    call: parts.Word
    reason: str = ""

    @classmethod
    def known(cls, name: str) -> Opaque:
        """Return the stage of a call whose order is known to be open."""
        return cls(call=name, reason=WHY_OPEN[name])

    @property
    def called(self) -> str:
        """The call that it stands for."""
        return self.call

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return its reason."""
        return self.reason or "its order depends on more than metadata tells"

    def length(self, *counts: object) -> None:
        """Return None: unknown."""


# What a reader is given besides its settings.
OF_READ = ("spec", "data", "assert_cardinality")


class Read(parts.Source):
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

    name = "read"
    parameters = (
        parts.value("spec", "split", takes="spec"),
        parts.value("data", by_name=True),
        parts.value("assert_cardinality", by_name=True),
    )
    spec: parts.Word | None = None
    data: parts.Word | None = None
    settings: parts.OwnSettings = ()
    assert_cardinality: bool = True
    listed: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data is not None:  # passwords of a URL stay out of all that is written of stages
            object.__setattr__(self, "data", public_url(self.data))

    @property
    def has_cardinality(self) -> bool:
        """Whether TensorFlow knows how many examples there are."""
        # TFDS asserts the number of its metadata; of files that a script lists tf.data knows none.
        return self.assert_cardinality and not self.listed

    @classmethod
    def made(cls, values: dict[str, Any]) -> tuple[parts.Part, ...]:
        """Return a reader; what is not its own is a setting."""
        settings = {name: given for name, given in values.items() if name not in OF_READ}
        own = {name: given for name, given in values.items() if name in OF_READ}
        return (cls(**own, settings=tuple(settings.items())),)

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why files, or examples of them, come in another order in each run."""
        own = dict(self.settings)
        shuffles_anyhow = bool(own.get("shuffle_files")) and "shuffle_seed" not in own
        if self.listed and global_seed is None and shuffles_anyhow:
            return (
                "list_files shuffles the files without a seed, in another order in each run: set "
                "its seed, or shuffle=False, or tf.random.set_seed"
            )
        if deterministic is False:
            # TFDS decodes in parallel, as options decide (TFDS core/reader.py, Reader.read_files).
            return (
                "with_options(deterministic=False) yields examples in order of completion, in "
                "another order each run"
            )
        return None


class Range(parts.Source):
    """`tf.data.Dataset.range(stop)`, or any source of `stop` elements in a fixed order."""

    name = "range"
    effect = "counts from 0"
    has_cardinality: ClassVar[bool] = True
    stop: parts.Number

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return how many elements there are."""
        return self.stop

    def as_read(self, number: int = 1) -> Read:
        """Return the reader of these elements, of the `number`-th source of so many."""
        several = f"-{number}" if number > 1 else ""
        data = f"{self.name}({self.stop}){several}"
        return Read(data=data, assert_cardinality=self.has_cardinality)


class Generator(Range):
    """`tf.data.Dataset.from_generator` that yields `stop` elements, the same ones each time."""

    name = "generator"
    effect = "counts what the generator yields, each time the same"
    has_cardinality = False


class Counter(parts.Source):
    """`tf.data.Dataset.counter()`, or another source without end."""

    name = "counter"
    effect = "counts from 0, without end"
    parameters = (parts.value("", "start", "step", takes="code"),)

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return that there is no end."""
        return math.inf

    def as_read(self, number: int = 1) -> Read:
        """Return the reader of these elements, of the `number`-th source of this kind."""
        several = f"-{number}" if number > 1 else ""
        return Read(data=f"counter(){several}", settings=(("cycle", 1), ("repeat_files", True)))


_COUNTED = {"range": Range, "generator": Generator}


def counted_source(part: parts.Part) -> Range | Counter | None:
    """Return the source whose elements a reader counts, None of any other part.

    >>> counted_source(Range(stop=5).as_read())
    Range(stop=5)
    """
    data = part.data or "" if isinstance(part, Read) else ""
    kind, _, stop = data.removesuffix(")").partition("(")
    source: Range | Counter | None = Counter() if kind == "counter" else None
    if kind in _COUNTED and stop.isdecimal():
        source = _COUNTED[kind](stop=int(stop))
    return source if source is not None and source.as_read() == part else None


class Padding(parts.Source):
    """`Dataset.from_tensors(x).repeat(count)`: elements of no dataset beside some, all alike.

    They have the id `pad`, and no file.
    """

    name = "pad"
    effect = "yields padding, which is of no dataset"
    count: parts.Number

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return how many elements there are."""
        return self.count


class Values(parts.Source):
    """`tf.data.Dataset.from_tensor_slices(values)` of whole numbers, as choices are."""

    name = "values"
    effect = "lists numbers"
    values: tuple[int, ...] = parts.argument(takes="whole")

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return how many values there are."""
        return len(self.values)


class Mixture(parts.Source, is_call=False):
    """What combines several datasets."""

    inputs: tuple[Pipeline, ...] = parts.argument("datasets", takes="pipelines")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.inputs:
            raise UsageError(f"{self.name}: an input, or several, is needed")


class Zip(Mixture):
    """`tf.data.Dataset.zip(inputs)`: an element holds one of each, in their order."""

    name = "zip"
    effect = "puts one element of each dataset into one"

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return the length of the shortest input."""
        # An empty input ends the zip, however long the unknown ones are.
        known = [count for count in others if count is not None]
        if len(known) < len(others):
            return 0 if 0 in known else None
        return min(known)


class SampleFromDatasets(Mixture):
    """`tf.data.Dataset.sample_from_datasets(inputs, weights, seed, stop_on_empty_dataset, ..)`.

    weights_dtype: what TensorFlow makes of the weights, "float32" of Python's own numbers and
        "float64" of a NumPy array of these; it decides one choice in some ten million.
    """

    name = "sample_from_datasets"
    effect = "draws the next dataset by its weight"
    weights: parts.Weights | None = None
    seed: parts.Seed | None = None
    stop_on_empty: bool = parts.argument("stop_on_empty_dataset", default=False)
    rerandomize: bool | None = parts.argument("rerandomize_each_iteration", default=None)
    weights_dtype: Literal["float32", "float64"] = parts.argument(by_name=True, default="float32")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None and len(self.weights) != len(self.inputs):
            raise UsageError(
                f"{self.name}: {counted(len(self.weights), 'weight')} of "
                f"{counted(len(self.inputs), 'input')}: one each is needed"
            )

    @property
    def kept_inputs(self) -> list[int]:
        """The inputs that are sampled from: those of a weight above 0.

        They are chosen before weights are rounded. Of one that is left it makes no mixture, and
        draws nothing (tensorflow/python/data/ops/sample_from_datasets_op.py).

        >>> inputs = (Pipeline(), Pipeline(), Pipeline())
        >>> SampleFromDatasets(inputs=inputs, weights=(0.5, 0.0, 1e-60)).kept_inputs
        [0, 2]
        """
        weights = self.weights
        numbers = range(len(self.inputs))
        return [number for number in numbers if weights is None or weights[number] > 0]

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that the machine seeds it; one input is no mixture."""
        return None if len(self.kept_inputs) < 2 else _why_unseeded(self.seed, global_seed)

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return the sum of the inputs, where all are read to their end."""
        # With one endless input of several it may still end: that one may never be drawn again.
        if all(count == math.inf for count in others):
            return math.inf
        # With stop_on_empty the draws decide which input ends first, and so the length.
        return None if self.stop_on_empty else _sum(others)


class Choosing(Mixture, is_call=False):
    """A mixture in which numbers say which input comes next."""

    choices: Pipeline = parts.argument("choice_dataset", takes="pipeline")

    @property
    def fed_by(self) -> tuple[Pipeline, ...]:
        """The inputs; choices are numbers, and no examples."""
        return self.inputs

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return that there is no end, where no input has one; else it is unknown."""
        # Choices may end before their inputs do.
        return math.inf if all(count == math.inf for count in others) else None


class ChooseFromDatasets(Choosing):
    """`tf.data.Dataset.choose_from_datasets(inputs, choices, stop_on_empty_dataset)`."""

    name = "choose_from_datasets"
    effect = "takes the next dataset as chosen"
    stop_on_empty: bool = parts.argument("stop_on_empty_dataset", default=True)


class InterleaveDatasets(Choosing):
    """`ds.interleave(f, ..)` or `ds.flat_map(f)`, whose function makes one input of each number.

    choices: the numbers of inputs, as they are read: an input is opened anew for each.
    calls, deterministic: as in the call.
    is_legacy: it is `tf.data.experimental.parallel_interleave`.
    """

    name = "interleave_datasets"
    effect = "reads cycle_length datasets in turn, block_length elements of each"
    cycle_length: parts.PositiveCount = 1
    block_length: parts.PositiveCount = 1
    calls: parts.Calls | None = parts.argument("num_parallel_calls", default=None)
    deterministic: bool | None = None
    is_legacy: bool = False

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that threads yield in order of completion, where they do."""
        said = deterministic if self.deterministic is None else self.deterministic
        return _READY_FIRST if self.calls is not None and said is False else None


class Shared(parts.Source):
    """A dataset object that a script uses more than once, as in `zip((ds, ds.map(f)))`.

    Each iterator of a shuffle takes the next seeds of the dataset object that it belongs to, and a
    cache is filled once: two uses of one object read otherwise than two objects made alike. All
    sources `Shared` of one label in a pipeline are one object, so their pipelines are the same.
    """

    name = "shared"
    effect = "the same dataset object as above; its iterators take their seeds in turn"
    label: parts.Word
    pipeline: Pipeline = parts.argument("dataset", takes="pipeline")

    def length(self, others: Sequence[parts.Count]) -> parts.Count:
        """Return the length of the pipeline."""
        (count,) = others
        return count


def _sum(counts: Sequence[parts.Count]) -> parts.Count:
    if math.inf in counts:
        return math.inf
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


_THE_READER = Read()  # the command's


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """A source and the stages behind it, in the order of the script.

    >>> Pipeline(stages=(Shuffle(buffer=1000, seed=7), Repeat(count=3))).source
    Read(spec=None, data=None, settings=(), assert_cardinality=True, listed=False)
    """

    source: parts.Source = _THE_READER
    stages: tuple[parts.Stage, ...] = ()

    def __post_init__(self) -> None:
        # Frozen, so a list that the caller still holds must not be kept.
        object.__setattr__(self, "stages", tuple(self.stages))
        if not isinstance(self.source, parts.Source):
            raise UsageError(f"{type(self.source).__name__}: no source of a pipeline")
        for stage in self.stages:
            if not isinstance(stage, parts.Stage):
                raise UsageError(f"{type(stage).__name__}: no stage of a pipeline")
        self._check_ends()

    @property
    def never_ends(self) -> bool:
        """Whether it has no end, as far as its stages show.

        A repeat of nothing ends at once, and whether there is nothing is not known here.

        >>> Pipeline(stages=(Repeat(), Batch(size=2))).never_ends
        True
        >>> Pipeline(stages=(Repeat(), Take(count=5))).never_ends
        False
        """
        endless = self.source.never_ends
        for stage in self.stages:
            endless = stage.goes_on(endless)
        return endless

    def _check_ends(self) -> None:
        """Refuse a stage that reads to an end which never comes before it yields anything."""
        endless = self.source.never_ends
        for stage in self.stages:
            if endless and isinstance(stage, Shuffle) and stage.buffer == WHOLE_DATASET:
                raise UsageError(
                    "shuffle: buffer=-2 (the whole dataset) of what repeats without end: the "
                    "buffer never fills; give a number, or shuffle before the repeat"
                )
            if endless and isinstance(stage, Skip) and stage.count == -1:
                raise UsageError("skip: count=-1 (all) of what repeats without end: nothing comes")
            endless = stage.goes_on(endless)

    def __repr__(self) -> str:
        names = (part.called for part in (self.source, *self.stages))
        return f"<Pipeline {printable(' | '.join(names), _LONGEST_SHOWN)}>"
