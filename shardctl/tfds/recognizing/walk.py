"""A dataset's graph -> the pipeline of stages that it is, walked from the end to the sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shardctl.core.iteration.build import build
from shardctl.core.stages.calls import WHY_OPEN
from shardctl.core.stages.readers import readers_of
from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Map,
    Opaque,
    Pipeline,
    Range,
    Read,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shared,
    Skip,
    Source,
    Stage,
    Take,
    Values,
    WithOptions,
    Zip,
)
from shardctl.errors import ShardctlError
from shardctl.tfds.recognizing.found import FoundPipeline, FoundStage
from shardctl.tfds.recognizing.graph import LONGEST_RANGE, NoConstantError, Operation, num_rows
from shardctl.tfds.recognizing.mixtures import chosen_values, sampling
from shardctl.tfds.recognizing.options import Options
from shardctl.tfds.recognizing.reader import (
    FoundReader,
    UnknownReaderError,
    found_reader,
    reads_files,
)
from shardctl.tfds.recognizing.shared import shared_objects
from shardctl.tfds.recognizing.stage_of import opaque, stages_of_operation
from shardctl.tfds.recognizing.tfds_reader import behind_tfds

_COMBINE = ("ZipDataset", "DirectedInterleaveDataset")
_MOST_CHOICES = 1 << 20  # that are written one by one


def walked(root: Operation, options: Options) -> FoundPipeline:
    """Return the pipeline that a graph is."""
    walk = _Walk(options, shared_objects(root))
    pipeline = walk.pipeline(root, 0)
    return FoundPipeline(pipeline=pipeline, stages=tuple(walk.stages), options=options)


class _Walk:
    """The walk over a graph; `shared` are the labels of objects that are used more than once."""

    def __init__(self, options: Options, shared: Mapping[str, str]) -> None:
        self.stages: list[FoundStage] = []
        self._options = options
        self._shared = shared
        self._known: dict[str, Shared] = {}

    def pipeline(self, root: Operation, level: int) -> Pipeline:
        """Return the pipeline that ends with an operation."""
        chain = _chain(root)
        # Up to the last object that is used elsewhere too, the walk was there already.
        known = [index for index, each in enumerate(chain) if each.object_name in self._known]
        if known:
            again = self._known[chain[known[-1]].object_name or ""]
            self._note(again, (chain[known[-1]],), level)
            return self._behind(again, (), chain[known[-1]], chain[known[-1] + 1 :], level)
        if reads_files(chain[0]):
            source, stages, last, rest = self._reader(chain, level)
        else:
            source, stages, last, rest = self._plain(chain[0], level), (), chain[0], chain[1:]
        return self._behind(source, stages, last, rest, level)

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
        for operation in rest:
            behind = self._stages(operation, level)
            made = self._as_shared(operation, replace(made, stages=(*made.stages, *behind)))
        return made

    def _as_shared(self, operation: Operation, pipeline: Pipeline) -> Pipeline:
        name = operation.object_name
        if name is None or name not in self._shared:
            return pipeline
        if name not in self._known:
            self._known[name] = Shared(label=self._shared[name], pipeline=pipeline)
        return Pipeline(source=self._known[name])

    def _plain(self, first: Operation, level: int) -> Source:
        in_turn = first.op in _COMBINE
        source = self._combination(first, level) if in_turn else _plain_source(first)
        self._note(source, (first,), level)
        return source

    def _reader(
        self, chain: tuple[Operation, ...], level: int
    ) -> tuple[Source, tuple[Stage, ...], Operation, tuple[Operation, ...]]:
        first, *others = chain
        rest = tuple(others)
        try:
            reader = found_reader(first)
        except UnknownReaderError as error:
            unknown = Opaque(call="read of files", reason=str(error))
            self._note(unknown, (first,), level)
            return unknown, (), first, rest
        own: tuple[tuple[WithOptions, Operation], ...] = ()
        if reader.is_tfds:
            behind = behind_tfds(reader, rest, self._options)
            reader, rest, own = behind.reader, behind.rest, behind.options
        if reader.in_order == "default" and self._options.hands_out_what_is_ready:
            reader = replace(reader, in_order="false")
        if self._options.op_determinism:
            reader = replace(reader, in_order="true", decodes_in_order=True)
        source = Read()
        self._note(source, reader.operations, level, reader=reader)
        for stage, operation in own:
            self._note(stage, (operation,), level)
        last = next(
            (op for op in reversed(reader.operations) if op.object_name in self._shared),
            reader.operations[-1],
        )
        return source, tuple(stage for stage, _ in own), last, rest

    def _combination(self, operation: Operation, level: int) -> Source:
        if operation.op == "ZipDataset":
            inputs = tuple(self.pipeline(each, level + 1) for each in operation.inputs)
            return _of_one_index(inputs) or Zip(inputs=inputs)
        selector, *given = operation.inputs
        stop = operation.flag("stop_on_empty_dataset")
        found = sampling(selector, len(given))
        inputs = tuple(self.pipeline(each, level + 1) for each in given)
        if found is not None:
            return SampleFromDatasets(
                inputs=inputs,
                weights=found.weights,
                weights_dtype=found.dtype,
                seed=found.pair,
                stop_on_empty=stop,
                rerandomize=found.rerandomize,
            )
        choices = _choices(selector, self._options)
        return ChooseFromDatasets(inputs=inputs, choices=choices, stop_on_empty=stop)

    def _stages(self, operation: Operation, level: int) -> tuple[Stage, ...]:
        if operation.op == "ConcatenateDataset":
            other = self.pipeline(operation.inputs[1], level + 1)
            stages: tuple[Any, ...] = (Concatenate(other=other),)
        else:
            stages = stages_of_operation(operation, self._options)
        removed = _removed(operation, stages, self._options)
        if removed is not None:
            stages = removed
            if not stages:
                self._note(Map(), (operation,), level, removed=True)
        for stage in stages:
            self._note(stage, (operation,), level)
        return stages

    def _note(
        self,
        part: Stage | Source,
        operations: tuple[Operation, ...],
        level: int,
        *,
        reader: FoundReader | None = None,
        removed: bool = False,
    ) -> None:
        self.stages.append(
            FoundStage(
                part=part, operations=operations, level=level, reader=reader, removed=removed
            )
        )


def _of_one_index(inputs: tuple[Pipeline, ...]) -> Range | None:
    """Return a zip of sources that nothing shuffles as one source: element i has all of index i.

    None where that is not so, or it has no end.
    """
    zipped = Pipeline(source=Zip(inputs=inputs))
    if readers_of(zipped):
        return None
    try:
        node = build(zipped, _no_reader)
        if node.is_infinite or not node.is_fixed or node.cardinality != node.num_elements:
            return None
    except ShardctlError:
        return None
    return Range(stop=node.num_elements) if node.num_elements >= 0 else None


def _no_reader(read: Read) -> Any:
    raise AssertionError(read)


def _chain(root: Operation) -> tuple[Operation, ...]:
    """Return the operations from a source to the end, along what each reads first."""
    chain = [root]
    while chain[-1].inputs and not reads_files(chain[-1]) and not _is_generator(chain[-1]):
        here = chain[-1]
        if here.op in _COMBINE:
            counted = _counted(here)
            if counted is None:
                break
            chain.append(counted)
            continue
        chain.append(here.input)
    return tuple(reversed(chain))


def _is_generator(operation: Operation) -> bool:
    """Whether this is `from_generator`, which TensorFlow makes of a flat_map over one number."""
    function = operation.function if operation.op == "FlatMapDataset" else None
    return function is not None and any(
        node.op == "GeneratorDataset" for node in function.nodes.values()
    )


def _counted(operation: Operation) -> Operation | None:
    """Return what `enumerate` counts: it zips a range that has no end with it."""
    if operation.op != "ZipDataset" or len(operation.inputs) != 2:
        return None
    numbers, counted = operation.inputs
    try:
        endless = numbers.op == "RangeDataset" and numbers.number("stop") > LONGEST_RANGE
    except NoConstantError:
        return None
    return counted if endless else None


def _plain_source(operation: Operation) -> Source:
    """Return a source of elements that are counted from 0."""
    if _is_generator(operation):
        return Opaque(call="from_generator", reason=WHY_OPEN["from_generator"])
    try:
        length = _length(operation)
    except NoConstantError as error:
        return Opaque(call=_called(operation), reason=str(error))
    return opaque(operation) if length is None else Range(stop=length)


def _length(operation: Operation) -> int | None:
    if operation.op == "RangeDataset":
        numbers = (operation.number(name) for name in ("start", "stop", "step"))
        return len(range(*numbers))
    if operation.op == "TensorSliceDataset":
        return num_rows(operation.others[0])
    if operation.op == "TensorDataset":
        return 1
    if operation.op == "ListDataset":
        per_element = len(operation.attributes["output_types"].list.type)
        return len(operation.others) // per_element
    return None


def _called(operation: Operation) -> str:
    return "range" if operation.op == "RangeDataset" else operation.op.removesuffix("Dataset")


def _choices(selector: Operation, options: Options) -> Pipeline:
    """Return the pipeline of choices, whose elements count by their values."""
    chain = _chain(selector)
    values = chosen_values(chain[0])
    source: Source
    if isinstance(values, range) and values == range(len(values)):
        source = Range(stop=len(values))
    elif values is None or len(values) > _MOST_CHOICES:
        source = Opaque(call=_called(chain[0]), reason="what it chooses is not known")
    elif tuple(values) == tuple(range(len(values))):
        source = Range(stop=len(values))
    else:
        source = Values(values=tuple(values))
    stages: list[Stage] = []
    for operation in chain[1:]:
        if operation.op in _COMBINE or operation.op == "ConcatenateDataset":
            stages.append(Opaque(call=operation.op, reason="what it chooses is not known"))
        elif operation.function is not None and not operation.function.is_identity:
            stages.append(
                Opaque(call="map", reason="what it chooses is computed by code of the script")
            )
        else:
            stages += stages_of_operation(operation, options)
    return Pipeline(source=source, stages=tuple(stages))


def _removed(
    operation: Operation, stages: tuple[Stage, ...], options: Options
) -> tuple[Stage, ...] | None:
    """Return what is left of stages that do nothing, None where they do something.

    TensorFlow takes such stages out (tensorflow/core/grappler/optimizers/data/
    noop_elimination.cc), unless options say no; then they still part a shuffle from a repeat.
    """
    is_identity = (
        operation.op in ("MapDataset", "ParallelMapDatasetV2")
        and operation.function is not None
        and operation.function.is_identity
    )
    if not is_identity and stages not in _NOTHING_DONE:
        return None
    if options.removes_nothing_done:
        # Those of a chain are left to the rules of the pipeline, where these see the same.
        return () if is_identity or options.optimizations is False else None
    if is_identity or options.noop_elimination is None:
        return None
    if stages == (Repeat(count=1),):
        return (Opaque(call="repeat", reason="noop_elimination=False keeps a repeat of one epoch"),)
    return (Map(),)


_NOTHING_DONE: tuple[tuple[Stage, ...], ...] = (
    (Take(count=-1),),
    (Skip(count=0),),
    (Repeat(count=1),),
    (Shard(num_shards=1, index=0),),
)
