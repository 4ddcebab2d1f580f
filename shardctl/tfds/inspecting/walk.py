"""Turns the graph of a dataset into a pipeline of stages, from the sources to the end."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_lowercase
from typing import Any

from shardctl.base.text import printable
from shardctl.base.tfds_rules import LONGEST_RANGE
from shardctl.errors import ShardctlError, UsageError
from shardctl.iteration.build import build
from shardctl.iteration.iteration import NOTHING
from shardctl.stages import stages as call
from shardctl.stages.part import Source, Stage
from shardctl.stages.pipelines import parts_of, readers_of
from shardctl.stages.stages import Map, Opaque, Pipeline, Range, Shared, WithOptions
from shardctl.tfdata.mixture import weights_of_logits
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.inspecting import graph, stage_of
from shardctl.tfds.inspecting.graph import Function, NoConstantError, Operation, Options, constant
from shardctl.tfds.inspecting.reader import (
    FoundReader,
    UnknownReaderError,
    found_reader,
    in_order_of,
    paths_of,
    reads_files,
)

# What an operation that depends on data is by its scan, see `tfds/training/scan.py`.
Scans = Callable[[Operation, tuple[Stage, ...], Options], tuple[Stage, ...]]

_COMBINE = ("ZipDataset", "DirectedInterleaveDataset")
_COUNT_SECONDS = 10  # for what a generator yields
_MOST_CHOICES = 1 << 20  # that are written one by one


def walked(root: Operation, options: Options, scans: Scans | None = None) -> FoundPipeline:
    """Return the pipeline that a graph is, with what scans say of stages that depend on data."""
    beside_files = any(map(reads_files, root.all()))
    shared = shared_objects(root)
    walk = _Walk(options=options, shared=shared, scans=scans, beside_files=beside_files)
    pipeline = walk.pipeline(root, 0)
    return FoundPipeline(pipeline=pipeline, stages=tuple(walk.stages))


@dataclass(kw_only=True, eq=False)
class _Walk:
    """The walk over a graph.

    shared: the labels of objects that are used more than once.
    beside_files: whether it reads files, so that other elements are padding, if they are alike.
    files: of the readers that one function makes.
    """

    options: Options
    shared: Mapping[str, str]
    scans: Scans | None
    beside_files: bool
    stages: list[FoundStage] = field(default_factory=list)
    known: dict[str, Shared] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def pipeline(self, root: Operation, level: int) -> Pipeline:
        """Return the pipeline that ends with an operation."""
        chain = _chain(root)
        # Up to the last object that is used elsewhere too, the walk was there already.
        known = [index for index, each in enumerate(chain) if each.object_name in self.known]
        # The last one: the longest part that is known already.
        if known:
            again = self.known[chain[known[-1]].object_name or ""]
            self._note(again, (chain[known[-1]],), level)
            return self._behind(again, (), chain[known[-1]], chain[known[-1] + 1 :], level)
        # A reader of files comprises several operations, which `_reader` takes together.
        if reads_files(chain[0]):
            return self._behind(*self._reader(chain, level), level)
        if chain[0].made is not None:
            source = self._interleaved(chain[0], chain[0].made, level)
        elif chain[0].op in _COMBINE:
            source = self._combination(chain[0], level)
        else:
            source = self._plain(chain)
        self._note(source, (chain[0],), level)
        return self._behind(source, (), chain[0], chain[1:], level)

    def _behind(
        self,
        source: Source,
        stages: tuple[Stage, ...],
        last: Operation,
        rest: tuple[Operation, ...],
        level: int,
    ) -> Pipeline:
        """Return a pipeline from a source, which is `last`, and the operations behind it."""
        made = self._as_shared(last, Pipeline(source=source, stages=stages))
        for place, operation in enumerate(rest):
            # A window and the flat_map that batches it are one stage.
            after = rest[place + 1] if place + 1 < len(rest) else None
            if after is not None and stage_of.batched_window(after):
                continue
            behind = self._stages(operation, level)
            # After each operation: any object on the way may be the shared one.
            made = self._as_shared(operation, replace(made, stages=(*made.stages, *behind)))
        return made

    def _as_shared(self, operation: Operation, pipeline: Pipeline) -> Pipeline:
        name = operation.object_name
        if name is None or name not in self.shared:
            return pipeline
        # The first use defines the object, and others refer to it by its label.
        if name not in self.known:
            self.known[name] = Shared(label=self.shared[name], pipeline=pipeline)
        return Pipeline(source=self.known[name])

    def _reader(
        self, chain: tuple[Operation, ...], level: int
    ) -> tuple[Source, tuple[Stage, ...], Operation, tuple[Operation, ...]]:
        first, rest = chain[0], chain[1:]
        try:
            reader = found_reader(first, self.files)
        except UnknownReaderError as error:
            # What no settings of one reader say may be an interleave of readers of a file each.
            if first.made is not None:
                made = self._interleaved(first, first.made, level)
                self._note(made, (first,), level)
                return made, (), first, rest
            # Not understood: one nondeterministic source, so that the answer names it and goes no
            # further.
            unknown = Opaque(call="read of files", reason=str(error))
            self._note(unknown, (first,), level)
            return unknown, (), first, rest
        own: Stated = ()
        # Behind TFDS's interleave comes what TFDS adds itself; it is no stage of the script.
        if reader.is_tfds:
            reader, own, rest = behind_tfds(reader, rest, self.options)
        # The attribute is "default": the options decide. With op determinism, nothing is out of
        # order.
        if reader.in_order == "default" and self.options.hands_out_what_is_ready:
            reader = replace(reader, in_order="false")
        if self.options.op_determinism:
            reader = replace(reader, in_order="true", decodes_in_order=True)
        source = call.Read()
        self._note(source, reader.operations, level, reader=reader)
        for stage, operation in own:
            self._note(stage, (operation,), level)
        last = next(
            (op for op in reversed(reader.operations) if op.object_name in self.shared),
            reader.operations[-1],
        )
        return source, tuple(stage for stage, _ in own), last, rest

    def _plain(self, chain: Sequence[Operation]) -> Source:
        source = _plain_source(chain)
        if self.beside_files and isinstance(source, Range) and _are_alike(chain[0]):
            return call.Padding(count=source.stop)
        return source

    def _combination(self, operation: Operation, level: int) -> Source:
        if operation.op == "ZipDataset":
            inputs = tuple(self.pipeline(each, level + 1) for each in operation.inputs)
            # A zip of plain sources counts as one source, if nothing in it shuffles.
            return _of_one_index(inputs) or call.Zip(inputs=inputs)
        # The first input of a DirectedInterleave chooses among the others.
        selector, *given = operation.inputs
        stop = operation.flag("stop_on_empty_dataset")
        # First the selector's kind: `sample_from_datasets` draws, `choose_from_datasets` lists.
        found = sampling(selector, len(given))
        inputs = tuple(self.pipeline(each, level + 1) for each in given)
        if found is not None:
            return call.SampleFromDatasets(inputs=inputs, stop_on_empty=stop, **found)
        choices = _choices(selector, self.options)
        return call.ChooseFromDatasets(inputs=inputs, choices=choices, stop_on_empty=stop)

    def _interleaved(
        self, operation: Operation, datasets: tuple[Operation, ...], level: int
    ) -> Source:
        """Return the datasets that a function makes, in the order of what it is called with."""
        if any(map(shared_objects, datasets)):
            reason = "its function uses a dataset twice that reshuffles or caches"
            return Opaque(call=graph.call_name(operation.op), reason=reason)
        try:
            settings = _settings_of_interleave(operation, self.options)
        except NoConstantError as error:
            return Opaque(call=graph.call_name(operation.op), reason=str(error))
        order = _numbered(range(len(datasets)), operation.input.way, self.options)
        below = (one for each in datasets for one in each.all() if reads_files(one))
        self.files += [path for one in below for path in paths_of(one)]
        # Of one source that all of them read, the elements of all have their places there; those
        # of several are counted on, in the order in which the function makes them.
        is_one = len({_chain(each)[0].source_key for each in datasets}) == 1
        label, inputs, counted = f"source_{len(self.stages)}", [], 0
        for number, each in enumerate(datasets):
            start = len(self.stages)
            made = self.pipeline(each, level + 1)
            if isinstance(made.source, Range):
                stop = counted + made.source.stop
                if not is_one and stop > _MOST_CHOICES:
                    reason = f"its function makes datasets of more than {_MOST_CHOICES:,} elements"
                    return Opaque(call=graph.call_name(operation.op), reason=reason)
                one: Source = Shared(label=label, pipeline=Pipeline(source=made.source))
                if not is_one:
                    one = call.Values(values=tuple(range(counted, stop)))
                made, counted = replace(made, source=one), stop
            inputs.append(made)
            # The function made all of them, so that one shows what it does.
            if number:
                self.stages[start:] = [replace(one, is_again=True) for one in self.stages[start:]]
        return call.InterleaveDatasets(inputs=tuple(inputs), choices=order, **settings)

    def _stages(self, operation: Operation, level: int) -> tuple[Stage, ...]:
        if operation.op == "ConcatenateDataset":
            other = self.pipeline(operation.inputs[1], level + 1)
            stages: tuple[Stage, ...] = (call.Concatenate(other=other),)
        else:
            stages = stage_of.stages_of_operation(operation, self.options)
            if self.scans is not None:
                stages = self.scans(operation, stages, self.options)
        # `removed` is None where the stage does something, () where nothing is left of it.
        removed = _removed(operation, stages, self.options)
        if removed is not None:
            stages = removed
            if not stages:
                self._note(Map(), (operation,), level, removed=True)
        for stage in stages:
            self._note(stage, (operation,), level)
        return stages

    def _note(
        self, part: Stage | Source, operations: tuple[Operation, ...], level: int, **more: Any
    ) -> None:
        self.stages.append(FoundStage(part=part, operations=operations, level=level, **more))


def _of_one_index(inputs: tuple[Pipeline, ...]) -> Source | None:
    """Return a zip of sources that nothing shuffles as one source: element i has all of index i.

    None where that is not so, or it has no end.
    """
    zipped = Pipeline(source=call.Zip(inputs=inputs))
    if readers_of(zipped):
        return None
    try:
        # Built as an iteration without files: endless, shuffled or of unequal lengths is not one
        # source.
        node = build(zipped, lambda _: NOTHING)
        if node.is_infinite or not node.is_fixed or node.cardinality != node.num_elements:
            return None
    except ShardctlError:
        return None
    count = node.num_elements
    generated = any(isinstance(part, call.Generator) for part in parts_of(zipped))
    return None if count < 0 else call.Generator(stop=count) if generated else Range(stop=count)


def _chain(root: Operation) -> tuple[Operation, ...]:
    """Return the operations from a source to the end, along what each reads first."""
    chain = [root]
    while chain[-1].inputs and not (
        reads_files(chain[-1])
        or _is_generator(chain[-1])
        or graph.is_counter(chain[-1])
        or chain[-1].made is not None
    ):
        # `enumerate` zips numbers with the dataset; what is counted is the dataset.
        below = _counted(chain[-1]) if chain[-1].op in _COMBINE else chain[-1].input
        if below is None:
            break
        chain.append(below)
    return tuple(reversed(chain))


def _is_generator(operation: Operation) -> bool:
    """Whether this is `from_generator`, which TensorFlow makes of a flat_map over one number."""
    function = operation.function if operation.op == "FlatMapDataset" else None
    return function is not None and function.generates


def _counted(operation: Operation) -> Operation | None:
    """Return what `enumerate` counts: it zips a range that has no end with it."""
    if operation.op != "ZipDataset" or len(operation.inputs) != 2:
        return None
    numbers, counted = operation.inputs
    try:
        # `enumerate` makes a range up to the largest int64.
        endless = numbers.op == "RangeDataset" and numbers.number("stop") > LONGEST_RANGE
    except NoConstantError:
        return None
    return counted if endless else None


def _plain_source(chain: Sequence[Operation]) -> Source:
    """Return the source of elements that are counted from 0, with which a chain begins."""
    operation = chain[0]
    try:
        if _is_generator(operation):
            return _generated(chain)
        length = _length(operation)
    except NoConstantError as error:
        return Opaque(call=_called(operation), reason=str(error))
    if length is None:
        return stage_of.opaque(operation)
    return call.Counter() if length > LONGEST_RANGE else Range(stop=length)


def _generated(chain: Sequence[Operation]) -> Source:
    """Return how many elements a generator yields, of which a take right behind it reads some."""
    limit = -1
    for behind in chain[1:]:
        if behind.op not in ("TakeDataset", "PrefetchDataset", *graph.MAPS, *graph.GUARDS):
            break
        if behind.op == "AssertCardinalityDataset" and behind.number("cardinality") >= 0:
            return call.Generator(stop=behind.number("cardinality"))
        if behind.op == "TakeDataset":
            limit = behind.number("count")
            break
    try:
        count = _num_yielded(chain[0].graph.dataset([chain[0].node], chain[0].types).take(limit))
    except Exception as error:
        reason = f"counting what it yields failed: {printable(str(error), 200)}"
        return Opaque(call="from_generator", reason=reason)
    if count is None:
        reason = (
            f"it yields elements for more than {_COUNT_SECONDS} seconds, so they are not counted; "
            "put take(N) or assert_cardinality(N) right behind it"
        )
        return Opaque(call="from_generator", reason=reason)
    return call.Generator(stop=count)


def _num_yielded(dataset: Any) -> int | None:
    """Return how many elements a `tf.data.Dataset` yields, None if counting takes too long."""
    end, found = time.monotonic() + _COUNT_SECONDS, 0
    # Not the elements themselves, which may differ in shape and be large.
    for piece in dataset.map(without_autograph(lambda *_: 0)).batch(16):
        found += len(piece)
        if time.monotonic() > end:
            return None
    return found


def _are_alike(operation: Operation) -> bool:
    """Return whether all elements of a source are one and the same."""
    if operation.op != "TensorSliceDataset":
        return operation.op == "TensorDataset"
    rows = map(constant, operation.others)
    return all(row is not None and (row == row[:1]).all() for row in rows)


def _length(operation: Operation) -> int | None:
    """Return how many elements a source of counted elements has, None of any other operation."""
    if operation.op == "RangeDataset":
        numbers = range_of(operation)
        # Python counts the members of no longer range.
        return len(numbers[: LONGEST_RANGE + 1])
    if operation.op == "TensorSliceDataset":
        # The rows of the first component, without their values; all components have as many.
        rows = operation.others[0]
        return None if rows is None else int(rows.attr["value"].tensor.tensor_shape.dim[0].size)
    if operation.op == "TensorDataset":
        return 1
    if operation.op == "LoadDataset":
        return _saved_length(operation)
    if operation.op == "ListDataset":
        per_element = len(operation.attributes["output_types"].list.type)
        # A list of elements has its components one after the other.
        return len(operation.others) // per_element
    return LONGEST_RANGE + 1 if graph.is_counter(operation) else None


# What `load` does with what was saved in several parts: one after the other of them, in turn.
_IN_TURN = {"ParallelInterleaveDatasetV4", "Const", "Identity"}


def _saved_length(operation: Operation) -> int | None:
    """Return how many elements `load` reads, None where it may read several parts in turn."""
    path = operation.value("path")
    if path is None or operation.graph.ops_in_functions(operation.node) - _IN_TURN:
        return None
    parts = tensorflow().io.gfile.glob(f"{path.item().decode()}/*/*.shard")
    length = int(operation.graph.dataset([operation.node], operation.types).cardinality())
    return length if len(parts) == 1 and length >= 0 else None


def range_of(operation: Operation) -> range:
    return range(*(operation.number(name) for name in ("start", "stop", "step")))


def _called(operation: Operation) -> str:
    return "range" if operation.op == "RangeDataset" else operation.op.removesuffix("Dataset")


def _settings_of_interleave(operation: Operation, options: Options) -> dict[str, Any]:
    if operation.op == "FlatMapDataset":
        return {}
    cycle = operation.number("cycle_length")
    if cycle < 1:
        raise NoConstantError(f"its cycle length is {cycle}")
    found = {"cycle_length": cycle, "block_length": operation.number("block_length")}
    if operation.op == "InterleaveDataset":
        return found
    in_order = "true" if options.op_determinism else in_order_of(operation)
    threads = {"calls": "auto", "deterministic": {"true": True, "false": False}.get(in_order)}
    return found | threads | {"is_legacy": operation.op.startswith("Legacy")}


def _choices(selector: Operation, options: Options) -> Pipeline:
    """Return the pipeline of choices, whose elements count by their values."""
    way = selector.way
    is_mapped = any(each.op in graph.MAPS and not each.is_identity for each in way)
    values = _chosen_values(selector, is_mapped=is_mapped)
    if values is None:
        reason = "what it chooses is computed by code of the script, or is data"
        called = "map" if is_mapped else _called(way[0])
        return Pipeline(source=Opaque(call=called, reason=reason))
    return _numbered(values, way, options)


def _chosen_values(selector: Operation, *, is_mapped: bool) -> Sequence[int] | None:
    """Return the whole numbers that choices are made of, None where they are none, or data."""
    first = selector.way[0]
    if first.op == "RangeDataset" and not is_mapped:
        try:
            values = range_of(first)
        except NoConstantError:
            return None
        # 0, 1, 2, .. may be of any length; others are listed one by one.
        return values if _counts_on(values) or len(values) <= _MOST_CHOICES else None
    listed = selector.listed
    if listed is None or len(listed.element_spec) != 1:
        return None
    (kind,) = listed.element_spec
    if kind.shape != () or not kind.dtype.is_integer:
        return None
    return [value for (batch,) in listed.batch(_MOST_CHOICES) for value in batch.numpy().tolist()]


def _numbered(values: Sequence[int], way: tuple[Operation, ...], options: Options) -> Pipeline:
    """Return the numbers that a source lists, with the stages that choose among them."""
    # 0, 1, 2, ..: a Range, of any length.
    ranged = _counts_on(values)
    source = Range(stop=len(values)) if ranged else call.Values(values=tuple(values))
    stages = (stage_of.stages_of_operation(each, options) for each in way[1:])
    return Pipeline(source=source, stages=tuple(stage for each in stages for stage in each))


def _counts_on(values: Sequence[int]) -> bool:
    """Return whether values are 0, 1, 2 and so on; a range of any length is not listed for that."""
    numbers = range(len(values))
    # Range objects compare by their members, without listing them.
    return values == numbers if isinstance(values, range) else tuple(values) == tuple(numbers)


def _removed(
    operation: Operation, stages: tuple[Stage, ...], options: Options
) -> tuple[Stage, ...] | None:
    """Return what is left of stages that do nothing, None where they do something.

    TensorFlow takes such stages out (tensorflow/core/grappler/optimizers/data/
    noop_elimination.cc), unless options say no; then they still part a shuffle from a repeat.
    """
    if not operation.is_identity and stages not in _NOTHING_DONE:
        return None
    # `optimizations` may be None, which means on.
    optimizes = options.stated.optimizations is not False
    if options.noop_elimination not in (None, optimizes):
        reason = "noop_elimination is set otherwise than the other optimizations; leave it out"
        return (Opaque(call=_called(operation), reason=reason),)
    # Those of a chain are left to the rules of the pipeline, where these see the same.
    return () if operation.is_identity and optimizes else None


_NOTHING_DONE: tuple[tuple[Stage, ...], ...] = (
    (call.Take(count=-1),),
    (call.Skip(count=0),),
    (call.Repeat(count=1),),
    (call.Shard(num_shards=1, index=0),),
)


# Mixtures: the selector of `sample_from_datasets`, and the choices of `choose_from_datasets`.
#
# Source: tensorflow/python/data/ops/sample_from_datasets_op.py and choose_from_datasets_op.py;
# both are a DirectedInterleaveDataset whose first input says which of the others is next.

_FLOAT32_BYTES = 4


def sampling(selector: Operation, num_inputs: int) -> dict[str, Any] | None:
    """Return what `SampleFromDatasets` says, a kernel pair as seed; None where nothing samples."""
    function = selector.function
    if selector.op != "MapDataset" or function is None:
        return None
    logits = _logits(function)
    batch = selector.input
    if logits is None or batch.op not in ("BatchDatasetV2", "BatchDataset"):
        return None
    numbers = batch.input
    if numbers.op not in ("RandomDataset", "RandomDatasetV2"):
        return None
    try:
        in_pairs = batch.number("batch_size") == 2
        # Shape (1, inputs): one row of logits; seeds in pairs, as the stateless op takes them.
        if logits.shape != (1, num_inputs) or not in_pairs:
            return None
        return {
            "weights": _weights(logits[0]),
            "weights_dtype": "float64" if logits.dtype.itemsize > _FLOAT32_BYTES else "float32",
            "seed": stage_of.kernel_pair(numbers),
            "rerandomize": numbers.flag("rerandomize_each_iteration") or None,
        }
    except (NoConstantError, UsageError):
        return None


def _logits(function: Function) -> Any:
    """Return the logits of a function of a seed that is one draw of a multinomial distribution.

    They are captured, or a constant of the function where a script gives no weights.
    """
    if len(function.returned) != 1 or function.op(function.returned[0]) != "Squeeze":
        return None
    draw = function.inputs(function.returned[0])[0]
    if function.op(draw) != "StatelessMultinomial":
        return None
    logits, count, seed = function.inputs(draw)
    one = function.constant(count)
    # One draw for each seed, and the seed must be the element itself.
    if seed != function.parameters[0] or one is None or int(one) != 1:
        return None
    return function.constant(logits)


def _weights(logits: Any) -> tuple[float, ...] | None:
    """Return weights with these logarithms; None for all ones, where a script gives no weights."""
    # Without weights, TensorFlow uses logits of ones (sample_from_datasets_op.py).
    if (logits == 1).all():
        return None
    if logits.dtype.itemsize > _FLOAT32_BYTES:
        # Logits of float64 come from an array of the script, those of float32 from a list.
        return tuple(map(_in_few_digits, logits.tolist()))
    return weights_of_logits(logits)


def _in_few_digits(logit: float) -> float:
    """Return a number whose logarithm this is, as people write it, or else the nearest there is.

    >>> _in_few_digits(math.log(0.7))
    0.7
    """
    near = math.exp(logit)
    # The shortest decimal with exactly this logarithm; rounding must not change a draw.
    said = (float(f"{near:.{digits}g}") for digits in range(1, 17))
    return next((weight for weight in said if math.log(weight) == logit), near)


# Dataset objects that a script uses more than once; a graph has a copy of them for each use.


def shared_objects(root: Operation) -> Mapping[str, str]:
    """Return the objects that are used by several others, by their names, each with a label.

    Only those count whose iterators know of each other: something of them reshuffles, or is
    cached. What is used twice by way of an object that is used twice is no use of its own.
    """
    users: dict[str, set[tuple[object, int]]] = defaultdict(set)
    with_state: dict[str, bool] = {}
    for operation in root.all():
        # An object is known by its name; an operation without one is its own user.
        user = operation.object_name or id(operation)
        for place, used in enumerate(operation.inputs):
            if used.object_name is not None:
                users[used.object_name].add((user, place))
                with_state.setdefault(used.object_name, graph.has_state(used))
    # Used at several places, and with state: without a state two uses read alike anyway.
    names = [name for name, uses in users.items() if len(uses) > 1 and with_state[name]]
    # a to z, then a1 to z1, and so on.
    return {n: f"{ascii_lowercase[i % 26]}{i // 26 or ''}" for i, n in enumerate(names)}


# What TFDS puts behind its interleave: assertion, options, decoding, autocache and prefetch.
#
# Sources: TFDS core/reader.py, _read_files and Reader.read_files; core/dataset_builder.py,
# _build_single_dataset.


Stated = tuple[tuple[WithOptions, Operation], ...]


def behind_tfds(
    reader: FoundReader, rest: tuple[Operation, ...], options: Options
) -> tuple[FoundReader, Stated, tuple[Operation, ...]]:
    """Return TFDS's reader with what TFDS puts behind it, the options it states, and what is left.

    An autocache belongs to it where no order changes by it; else it is a stage, as it would be
    in a script. So is all that `as_supervised` and `batch_size` add.
    """
    left = list(rest)
    own: list[Operation] = []

    def taken(*ops: str) -> Operation | None:
        """Return the next operation where it is one of these, which the reader then has."""
        if not left or left[0].op not in ops:
            return None
        own.append(left.pop(0))
        return own[-1]

    # In TFDS's order; each of them may be missing.
    asserted = taken("AssertCardinalityDataset")
    stated, decoding = taken("OptionsDataset"), taken(*graph.MAPS)
    # Only a cache that changes no order belongs to the reader; otherwise it is a stage.
    if _keeps_its_order(reader) and left and stage_of.keeps_in_memory(left[0]):
        taken("CacheDatasetV2")
    taken("PrefetchDataset")
    reader = replace(
        reader, operations=(*reader.operations, *own), asserts_cardinality=asserted is not None
    )
    # Decoding in parallel with deterministic=False yields examples as they are ready, though the
    # interleave keeps its order.
    if decoding is not None and options.hands_out_what_is_ready and _runs_ahead(decoding):
        reader = replace(reader, in_order="false", decodes_in_order=False)
    if stated is None:
        return reader, (), tuple(left)
    # What later options override does not count.
    said = options.in_force(graph.options_of(stated))
    if said.deterministic and reader.in_order == "true":
        reader = replace(reader, settings=(*reader.settings, ("deterministic", True)))
    if said.deterministic is not False:  # parallel maps of the script go by that too
        said = replace(said, deterministic=None)
    return reader, () if said == WithOptions() else ((said, stated),), tuple(left)


def _runs_ahead(decoding: Operation) -> bool:
    """Return whether a map that options decide yields what is ready first."""
    # The map's own attribute wins over the options.
    if decoding.op == "MapDataset" or stage_of.deterministic(decoding) is not None:
        return False
    try:
        # One call at a time cannot overtake.
        return decoding.number("num_parallel_calls") != 1
    except NoConstantError:
        return True


def _keeps_its_order(reader: FoundReader) -> bool:
    """Return whether every pass reads alike, so that a cache changes nothing."""
    settings = dict(reader.settings)
    return not reader.is_endless and (
        not settings.get("shuffle_files") or settings.get("reshuffle") is False
    )


# What was found of a pipeline: its stages as they are, each beside the operation that it is.


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundStage:
    """A stage or source of the pipeline, the operations that it stands for, and remarks.

    level: how deep it is among the inputs of combinations, from 0.
    reader: the reader that it is, None for all else.
    removed: whether TensorFlow's optimizer takes it out, so that it is no stage of the pipeline.
    is_again: whether it is of a further dataset that one function makes.
    """

    part: Stage | Source
    operations: tuple[Operation, ...]
    level: int = 0
    reader: FoundReader | None = None
    removed: bool = False
    is_again: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundPipeline:
    """A pipeline whose seeds are pairs of kernels, with the stages in their order.

    The readers are `Read` sources without a spec, each the `part` of a found stage with a reader.
    """

    pipeline: Pipeline
    stages: tuple[FoundStage, ...]
