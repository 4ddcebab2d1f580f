"""The calls that stages and sources are written as: their names and those of their arguments.

Text and document are two ways to write the same calls, so both are read and written by this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, Literal

from shardctl.core.arguments.values import text
from shardctl.core.stages import stages
from shardctl.core.stages.listed import interleave_by, listed_by, records_by
from shardctl.core.stages.stages import Opaque, Source, Stage
from shardctl.core.text import choices, did_you_mean, quoted
from shardctl.errors import UsageError

# A call as a stage or a source is written: its name, its arguments, and what it makes of them.

# "code" is what a script computes with, which decides nothing here; of a "function" the name.
# What is "written" is a literal, or code.
Takes = Literal["value", "pipeline", "pipelines", "whole", "spec", "code", "function", "written"]
Made = Callable[[dict[str, Any]], tuple[Stage | Source, ...]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Parameter:
    """An argument of a call: its own name, those of tf.data, and what it takes.

    by_name: not taken by its place.
    """

    name: str
    others: tuple[str, ...] = ()
    takes: Takes = "value"
    by_name: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Call:
    """A call; `parameters` are in the order of tf.data.

    made: its stages, of the values of arguments. of: the class whose name it has, None for a call
    that stands for another. anything: what else is given is not read. own_settings: so are
    settings of the reader.
    """

    name: str
    made: Made
    parameters: tuple[Parameter, ...] = ()
    of: Any = None
    is_source: bool = False
    anything: bool = False
    own_settings: bool = False

    @property
    def rest(self) -> Parameter | None:
        """The parameter that takes all that is given by place, None where there is none."""
        first = self.parameters[0] if self.parameters else None
        return first if first is not None and first.takes in ("pipelines", "whole") else None

    @property
    def main(self) -> Parameter | None:
        """The argument that stands alone, as the buffer of a shuffle; None where none does."""
        read = [p for p in self.parameters if p.name]
        return read[0] if read and self.name != "with_options" else None

    @property
    def is_offered(self) -> bool:
        """Whether it is offered where a stage is to be chosen: not what another name says too."""
        return self.of is not None and self.of is not Opaque and self.of.name == self.name

    @property
    def needed(self) -> list[str]:
        """The arguments that have no default."""
        of = () if self.of is None else fields(self.of)
        return [field.name for field in of if field.default is MISSING]

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of a name.

        Raises:
            UsageError: there is none.
        """
        for parameter in self.parameters:
            if name == parameter.name or name in parameter.others:
                return parameter
        if self.anything or name == "name":  # of the operation, which every call of tf.data takes
            return Parameter(name="", takes="code")
        if self.own_settings:
            return Parameter(name=name)
        own = [parameter.name for parameter in self.parameters if parameter.name]
        known = [other for parameter in self.parameters for other in parameter.others]
        near = did_you_mean(name, [*own, *known])
        raise UsageError(f"no argument {quoted(name)}; {near}there are: {choices(own)}")

    def placed(self, index: int) -> Parameter:
        """Return the parameter at a place.

        Raises:
            UsageError: there are not so many.
        """
        placed = [parameter for parameter in self.parameters if not parameter.by_name]
        if index < len(placed):
            return placed[index]
        # Of a function that is written out `lambda x, y` is the first part.
        if self.anything or (placed and placed[-1].takes == "code"):
            return Parameter(name="", takes="code")
        if self.name == "range":
            raise UsageError("range counts from 0 by 1: range(stop)")
        said = f"{len(placed)} at most" if placed else "none"
        raise UsageError(f"too many arguments by their place: {said}")

    def stages(self, given: Sequence[tuple[str, Any]]) -> tuple[Stage | Source, ...]:
        """Return what the call makes of arguments, each by its own name ("" for what is not read).

        Raises:
            UsageError: one is there twice, is missing or is out of range.
        """
        values: dict[str, Any] = {}
        for name, value in given:
            if name in values:
                raise UsageError(f"{name} is there twice")
            if name:
                values[name] = value
        missing = [name for name in self.needed if name not in values]
        if missing:
            raise UsageError(f"{missing[0]} is needed")
        return self.made(values)


def said_of(part: Stage | Source) -> Mapping[str, Any]:
    """Return the arguments of a stage or source that are not its defaults."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        field.name: values[field.name]
        for field in fields(part)
        if field.default is MISSING or values[field.name] != field.default
    }


def name_of(part: Stage | Source, *, is_source: bool) -> str:
    """Return the name of the call that a stage, or a source, is written as."""
    return OPAQUE_SOURCE if is_source and isinstance(part, Opaque) else part.name


def name_alone(part: Stage | Source, *, is_source: bool) -> str | None:
    """Return the name that says all of a part whose order is open, None where it does not."""
    if not isinstance(part, Opaque) or WHY_OPEN.get(part.call) != part.reason:
        return None
    return part.call if (part.call in _OPEN_SOURCES) is is_source else None


def call_named(name: str) -> Call:
    """Return the call of a name.

    Raises:
        UsageError: there is none; the names are told.
    """
    call = CALLS.get(name)
    if call is not None:
        return call
    kind = f"no stage {quoted(name)}; {did_you_mean(name, CALLS)}"
    stages_, sources = (
        choices([c.name for c in CALLS.values() if c.is_offered and c.is_source is source], 20)
        for source in (False, True)
    )
    raise UsageError(f"{kind}stages: {stages_}; sources: {sources}")


def _of(of: Any, *parameters: Parameter, name: str = "", **more: Any) -> Call:
    def made(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
        return (of(**values),)

    return Call(name=name or of.name, made=made, parameters=parameters, of=of, **more)


def _value(name: str, *others: str, **more: Any) -> Parameter:
    return Parameter(name=name, others=others, **more)


_SIZE = _value("size", "batch_size")
_DROP = _value("drop_remainder")
_CALLS = _value("calls", "num_parallel_calls")
_DETERMINISTIC = _value("deterministic")
_INPUTS = _value("inputs", "datasets", takes="pipelines")
_STOP = _value("stop_on_empty", "stop_on_empty_dataset")
_FUNCTION = Parameter(name="", others=("map_func", "func"), takes="function")
_COUNT = _value("count")


def _batches(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    """Return a batch; one with threads of its own reads ahead like a map that has them."""
    ahead = {name: values.pop(name) for name in ("calls", "deterministic") if name in values}
    batch = stages.Batch(**values)
    return (batch, stages.Map(**ahead)) if ahead.get("calls") is not None else (batch,)


def _rebatched(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    """Return what `rebatch` is the same as (tensorflow/core/kernels/data/rebatch_dataset_op.cc)."""
    return (stages.Unbatch(), stages.Batch(**values))


def _cached(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    filename = values.get("filename")
    if filename is None or text(filename) == "":
        return (stages.Cache(),)
    return (Opaque(call=CACHE_IN_FILE, reason=WHY_OPEN[CACHE_IN_FILE]),)


def _mapped(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    return (stages.Map(),)


# What a reader is given besides its settings.
OF_READ = ("spec", "data", "assert_cardinality")


def _read(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    own = {name: values.pop(name) for name in list(values) if name not in OF_READ}
    return (stages.Read(**values, settings=tuple(own.items())),)


def _prefetched(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    if values.get("size", 0) is None:
        del values["size"]
    return (stages.Prefetch(**values),)


def _listed(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    return (stages.Values(values=values["values"]),)


def _files(values: dict[str, Any]) -> tuple[Any, ...]:
    listed = listed_by(values)
    return (_open("list_files") if listed is None else listed,)


def _interleaved(values: dict[str, Any]) -> tuple[Any, ...]:
    interleave = interleave_by(values)
    return (_open("interleave") if interleave is None else interleave,)


def _records(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
    read = records_by(values)
    return (_open("TFRecordDataset") if read is None else read,)


def _open(name: str) -> Opaque:
    return Opaque(call=name, reason=WHY_OPEN[name])


CACHE_IN_FILE = "cache(filename)"
OPAQUE_SOURCE = "opaque_source"
_BY_DATA = "how many examples pass depends on the data"
_BY_CODE = "what it hands out is decided by code of the script"
# What leaves the order open, by the name of the call, and why.
WHY_OPEN: Mapping[str, str] = {
    CACHE_IN_FILE: "a cache in a file keeps the order of the run that wrote it",
    "snapshot": "a snapshot in files keeps the order of the run that wrote it",
    "flat_map": "how many elements come of each depends on the data",
    "interleave": "how many elements come of each depends on the data",
    "window": "its windows are datasets, of which later code makes elements",
    "group_by_window": "the groups depend on the data",
    "bucket_by_sequence_length": "the buckets depend on the lengths in the data",
    "take_while": _BY_DATA,
    "unique": _BY_DATA,
    "ignore_errors": "which elements fail, and are left out, depends on the data",
    "rejection_resample": "which elements pass depends on the data and on random numbers",
    "scan": _BY_CODE,
    "apply": _BY_CODE,
    "from_generator": _BY_CODE,
    "list_files": (
        "what it lists is read by code; list_files('data/*', seed=7) | interleave(cycle_length=4) "
        "has an order"
    ),
    "load": "what it reads is no dataset of TFDS",
    "random": "its elements are random numbers",
    "TFRecordDataset": "its files are named by code; TFRecordDataset('data/*') has an order",
    "TextLineDataset": "what it reads is no dataset of TFDS",
}
_OPEN_SOURCES = frozenset(
    {"from_generator", "list_files", "load", "random", "TFRecordDataset", "TextLineDataset"}
)


def _written(name: str, *others: str) -> Parameter:
    return Parameter(name=name, others=others, takes="written")


_LISTED = (
    Call(
        name="list_files",
        made=_files,
        parameters=(_written("pattern", "file_pattern"), _written("shuffle"), _written("seed")),
        is_source=True,
        anything=True,
    ),
    Call(
        name="interleave",
        made=_interleaved,
        parameters=(
            _written("map_func"),
            _written("cycle_length"),
            _written("block_length"),
            _written("calls", "num_parallel_calls"),
            _written("deterministic"),
        ),
        anything=True,
    ),
    Call(
        name="TFRecordDataset",
        made=_records,
        parameters=(
            _written("filenames"),
            _written("compression_type"),
            _written("buffer_size"),
            _written("num_parallel_reads"),
        ),
        is_source=True,
        anything=True,
    ),
)


def _opaque(name: str) -> Call:
    def made(values: dict[str, Any]) -> tuple[Stage | Source, ...]:
        return (_open(name),)

    return Call(name=name, made=made, is_source=name in _OPEN_SOURCES, anything=True)


_SOURCES = (
    Call(
        name="read",
        made=_read,
        parameters=(
            _value("spec", "split", takes="spec"),
            _value("data", by_name=True),
            _value("assert_cardinality", by_name=True),
        ),
        of=stages.Read,
        is_source=True,
        own_settings=True,
    ),
    _of(stages.Range, _value("stop"), is_source=True),
    _of(stages.Values, _value("values", takes="whole"), is_source=True),
    _of(stages.Zip, _INPUTS, is_source=True),
    _of(
        stages.SampleFromDatasets,
        _INPUTS,
        _value("weights"),
        _value("seed"),
        _STOP,
        _value("rerandomize", "rerandomize_each_iteration"),
        _value("weights_dtype", by_name=True),
        is_source=True,
    ),
    _of(
        stages.ChooseFromDatasets,
        _INPUTS,
        _value("choices", "choice_dataset", takes="pipeline"),
        _STOP,
        is_source=True,
    ),
    _of(
        stages.Shared,
        _value("label"),
        _value("pipeline", "dataset", takes="pipeline"),
        is_source=True,
    ),
)
_STAGES = (
    _of(
        stages.Shuffle,
        _value("buffer", "buffer_size"),
        _value("seed"),
        _value("reshuffle", "reshuffle_each_iteration"),
    ),
    _of(stages.Repeat, _COUNT),
    Call(
        name="batch",
        made=_batches,
        parameters=(_SIZE, _DROP, _CALLS, _DETERMINISTIC),
        of=stages.Batch,
    ),
    _of(stages.Unbatch),
    _of(stages.Shard, _value("num_shards"), _value("index")),
    _of(stages.Take, _COUNT),
    _of(stages.Skip, _COUNT),
    Call(name="cache", made=_cached, parameters=(_value("filename"),), of=stages.Cache),
    _of(stages.Map, _FUNCTION, _CALLS, _DETERMINISTIC),
    Call(
        name="prefetch",
        made=_prefetched,
        parameters=(_value("size", "buffer_size"),),
        of=stages.Prefetch,
    ),
    _of(stages.AssertCardinality, _value("count", "expected_cardinality")),
    _of(
        stages.WithOptions,
        _value("deterministic", by_name=True),
        _value("fusion", "shuffle_and_repeat_fusion", by_name=True),
        _value("optimizations", "apply_default_optimizations", by_name=True),
        _value("warm_start", "experimental_warm_start", by_name=True),
    ),
    _of(stages.Concatenate, _value("other", "dataset", takes="pipeline")),
    _of(
        stages.Filter,
        Parameter(name="", others=("predicate",), takes="code"),
        _value("kept", by_name=True),
    ),
)
_OWN_CALLS = (CACHE_IN_FILE, *(call.name for call in _LISTED))
_PADDED = (
    _SIZE,
    Parameter(name="", others=("padded_shapes",), takes="code"),
    Parameter(name="", others=("padding_values",), takes="code"),
    _DROP,
)
_OTHERS = (
    Call(name="padded_batch", made=_batches, parameters=_PADDED, of=stages.Batch),
    Call(name="ragged_batch", made=_batches, parameters=(_SIZE, _DROP), of=stages.Batch),
    Call(name="rebatch", made=_rebatched, parameters=(_SIZE, _DROP), of=stages.Batch),
    Call(
        name="from_tensor_slices",
        made=_listed,
        parameters=(_value("values", "tensors", takes="whole"),),
        of=stages.Values,
        is_source=True,
    ),
    Call(name="enumerate", made=_mapped, anything=True),
    *(_opaque(name) for name in WHY_OPEN if name not in _OWN_CALLS),
    *_LISTED,
    _of(Opaque, _value("call"), _value("reason")),
    _of(Opaque, _value("call"), _value("reason"), name=OPAQUE_SOURCE, is_source=True),
)
CALLS: Mapping[str, Call] = {call.name: call for call in (*_SOURCES, *_STAGES, *_OTHERS)}
