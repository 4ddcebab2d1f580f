"""The graph of a `tf.data.Dataset`: its operations, their arguments and functions.

The graph is what TensorFlow itself writes of a dataset (`tf.raw_ops.DatasetToGraphV2`): it is
public, holds every constant, and survives what `_inputs()` of the Python objects does not: the
wrapping by `tf.distribute`, whose sharding is already in it, `enumerate` and `choose`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from shardctl.errors import UsageError
from shardctl.stages.stages import WithOptions
from shardctl.tfds.imports import tensorflow

_IGNORE_STATE = 1  # of stateful ops, tf.data.experimental.ExternalStatePolicy.IGNORE
_DATASET = re.compile(r"Dataset(V\d+)?$")
# Operations that are the same in one of several versions.
MAPS = ("MapDataset", "ParallelMapDatasetV2")
SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
CACHES = ("CacheDataset", "CacheDatasetV2")
BATCHES = (
    "BatchDataset",
    "BatchDatasetV2",
    "ParallelBatchDataset",
    "MapAndBatchDataset",
    "PaddedBatchDataset",
    "PaddedBatchDatasetV2",
)
# What says something of the whole, or guards it.
GUARDS = (
    "OptionsDataset",
    "AssertCardinalityDataset",
    "AssertNextDataset",
    "FinalizeDataset",
    "ModelDataset",
    "MaxIntraOpParallelismDataset",
    "PrivateThreadPoolDataset",
)
# What changes which elements come, and when, but none of them.
CHOOSES = (
    *SHUFFLES,
    *CACHES,
    "ShuffleAndRepeatDataset",
    "ShuffleAndRepeatDatasetV2",
    "RepeatDataset",
    "TakeDataset",
    "SkipDataset",
    "ShardDataset",
    "FilterDataset",
    "ParallelFilterDataset",
    "TakeWhileDataset",
)
# What reads the datasets that its function makes.
INTERLEAVES = (
    "FlatMapDataset",
    "InterleaveDataset",
    "ParallelInterleaveDatasetV2",
    "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4",
    "LegacyParallelInterleaveDatasetV2",  # TFRecordDataset(files, num_parallel_reads=N)
)
_CHOOSES_ONLY = (*(op for op in CHOOSES if op != "FilterDataset"), *GUARDS, "PrefetchDataset")
# Elements that are no data: a script counts or lists them.
_COUNTED = (
    *("RangeDataset", "TensorSliceDataset", "TensorDataset", "ListDataset", "ZipDataset"),
    *("ConcatenateDataset", "RepeatDataset", "TakeDataset", "SkipDataset", "ShardDataset"),
    *(*MAPS, *BATCHES, *GUARDS, "PrefetchDataset"),
)
_MOST_LISTED = 1 << 20  # elements of a script's own that are listed one by one
_MOST_MADE = 1 << 10  # datasets that a function is asked for
# Ops that make of a file, or of a draw, what a dataset is built of.
_RUN = {
    *("PyFunc", "EagerPyFunc", "PyFuncStateless", "ReadFile", "MatchingFiles"),
    *("RandomUniform", "RandomUniformInt", "RandomStandardNormal", "TruncatedNormal"),
    *("RandomShuffle", "Multinomial", "StatefulUniform", "StatefulUniformInt", "VarHandleOp"),
    *("ReadVariableOp", "GeneratorDataset"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """One dataset operation: its node in a graph, the datasets that it reads, its other inputs.

    object_name: what TensorFlow calls the dataset object; two operations of one name are one
        object that is used twice. None where TensorFlow gives none.
    arguments: the nodes of the other inputs by the names of the op, None for what is no constant.
    """

    node: Any
    graph: Graph = field(repr=False)
    inputs: tuple[Operation, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Any, ...] = ()

    @property
    def op(self) -> str:
        """The op of its node."""
        return str(self.node.op)

    @cached_property
    def object_name(self) -> str | None:
        """The name of the object; one by a script may be that of several, and is none."""
        if "metadata" not in self.attributes:
            return None
        from tensorflow.core.framework import dataset_metadata_pb2  # no public name

        written = self.attributes["metadata"].s
        name: bytes = dataset_metadata_pb2.Metadata.FromString(written).name
        # Names that TensorFlow makes have a ":"; others may come from a script and repeat.
        return name.decode() if b":" in name else None

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of its node."""
        attributes: Mapping[str, Any] = self.node.attr
        return attributes

    @property
    def input(self) -> Operation:
        """The one dataset that it reads."""
        return self.inputs[0]

    def all(self) -> Iterator[Operation]:
        """Yield it and all that it reads, each once."""
        # Depth first with a list: recursion would end at a thousand stages.
        waiting, seen = [self], set()
        while waiting:
            operation = waiting.pop()
            if id(operation) not in seen:
                seen.add(id(operation))
                yield operation
                waiting += operation.inputs

    def number(self, name: str) -> int:
        """Return an argument that is a whole number.

        Raises:
            NoConstantError: TensorFlow computes it anew.
        """
        value = self.value(name)
        # A missing argument is None, which has no size.
        if getattr(value, "size", 0) != 1:
            raise NoConstantError(f"{name} of {self.op} is no constant")
        return int(value)

    def value(self, name: str) -> Any:
        """Return an argument as a NumPy array, None where it is no constant."""
        return constant(self.arguments.get(name))

    def text(self, name: str) -> str:
        """Return an attribute that is a text, empty where there is none."""
        return str(self.attributes[name].s.decode()) if name in self.attributes else ""

    def flag(self, name: str) -> bool:
        """Return an attribute that is true or false."""
        return name in self.attributes and bool(self.attributes[name].b)

    @property
    def shapes(self) -> tuple[Any, ...]:
        """The shapes of the components of its elements; a length that differs is -1."""
        name = "output_shapes"
        return tuple(self.attributes[name].list.shape) if name in self.attributes else ()

    @cached_property
    def function(self) -> Function | None:
        """The function that it applies, None without one."""
        found = self.graph.function_of(self.node)
        if found is None:
            return None
        # What a function captures comes first among the inputs that are no datasets.
        num_captured = len(self.attributes["Targuments"].list.type)
        return replace(found, captured=self.others[:num_captured])

    @cached_property
    def made(self) -> tuple[Operation, ...] | None:
        """The datasets that a flat_map or an interleave makes, one of each element of `first`.

        None where they are not known without data: what it is called with, or what it does.
        """
        is_one = self.op in INTERLEAVES and self.inputs and self.function is not None
        return _made(self) if is_one else None

    @property
    def way(self) -> tuple[Operation, ...]:
        """The operations from what lists elements to this one, which map them or choose among them.

        What is between changes which elements come, and when; a map changes each by itself.
        """
        found = [self]
        while found[0].inputs and (found[0].op in _CHOOSES_ONLY or found[0].op in MAPS):
            found.insert(0, found[0].input)
        return tuple(found)

    @property
    def types(self) -> tuple[Any, ...]:
        """The components of its elements, as TensorSpecs."""
        tf = tensorflow()
        # Ops have the list of their types under one of two names.
        name = "output_types" if "output_types" in self.attributes else "Toutput_types"
        kinds = map(tf.dtypes.as_dtype, self.attributes[name].list.type)
        shapes = map(tf.TensorShape, self.shapes)
        return tuple(tf.TensorSpec(s, t) for s, t in zip(shapes, kinds, strict=True))

    @property
    def listed(self) -> Any:
        """The elements of the source of `way` as its maps leave them, None where they are data."""
        way = self.way
        maps = [each for each in way if each.op in MAPS and not each.is_identity]
        below, types = (*way[0].all(), *maps), (way[0], *maps)[-1].types
        if any(each.op not in _COUNTED or each.is_stateful for each in below):
            return None
        if tensorflow().variant in (each.dtype for each in types):
            return None
        nodes = chained(way[0].node, [each.node for each in maps])
        found = self.graph.dataset(nodes, types)
        # Negative: without end, or unknown.
        return found if 0 <= int(found.cardinality()) <= _MOST_LISTED else None

    @property
    def source_key(self) -> Any:
        """What tells a source from others: its op, what it is given, and nothing of its name."""
        # What is no constant may be anything.
        if None in self.others or self.inputs:
            return id(self)
        said = {name: given for name, given in self.attributes.items() if name != "metadata"}
        attributes = tuple((name, said[name].SerializeToString()) for name in sorted(said))
        return (self.op, attributes, *(o.attr["value"].SerializeToString() for o in self.others))

    @property
    def is_stateful(self) -> bool:
        """Whether it applies a function whose result is no matter of its inputs alone."""
        return self.function is not None and self.function.definition.signature.is_stateful

    def mapped(self, function: str, kind: Any) -> Operation:
        """Return a map by one of its functions, of what it reads, to scalars of a type.

        That of a dataset is a variant.
        """
        # The captured inputs of several functions come one behind the other.
        several = ("key_func", "reduce_func", "window_size_func")
        lists = [f"T{name}_other_arguments" for name in several] if function in several else []
        own, first = f"T{function}_other_arguments" if lists else "Targuments", 1
        for name in lists[: lists.index(own)] if lists else ():
            first += len(self.attributes[name].list.type)
        captured = self.node.input[first : first + len(self.attributes[own].list.type)]
        node = type(self.node)(name=f"{self.node.name}/mapped", op="MapDataset")
        node.input.extend([self.node.input[0], *captured])
        node.attr["f"].CopyFrom(self.attributes[function])
        node.attr["Targuments"].CopyFrom(self.attributes[own])
        node.attr["output_types"].list.type.append(kind.as_datatype_enum)
        node.attr["output_shapes"].list.shape.add()
        node.attr["preserve_cardinality"].b = True
        return Operation(node=node, graph=self.graph, inputs=self.inputs)

    @property
    def is_identity(self) -> bool:
        """Whether it is a map that returns its elements as they are."""
        return self.op in MAPS and self.function is not None and self.function.is_identity


def call_name(op: str) -> str:
    """Return the call of tf.data that makes an operation, or an object of a class named like it.

    >>> call_name("GroupByWindowDataset"), call_name("LegacyParallelInterleaveDatasetV2")
    ('group_by_window', 'interleave')
    """
    # "LegacyParallelInterleave" and "Interleave" are one call to a user.
    name = re.sub(r"^(Legacy|Parallel|Global|Experimental)*", "", _DATASET.sub("", op))
    # CamelCase -> snake_case, at each change from lower to upper case.
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _made(operation: Operation) -> tuple[Operation, ...] | None:
    tf, graph = tensorflow(), operation.graph
    # Of what it only builds nothing runs here; what it reads or draws while it builds is data.
    if graph.ops_of_body(operation.node) & _RUN or any(map(has_state, operation.inputs[1:])):
        return None
    way, listed = operation.input.way, operation.input.listed
    if listed is None or int(listed.cardinality()) > _MOST_MADE:
        return None
    maps = [each.node for each in way if each.op in MAPS and not each.is_identity]
    try:
        # The same function under a map, which yields the datasets themselves.
        nodes = chained(way[0].node, [*maps, operation.mapped("f", tf.variant).node])
        datasets = graph.dataset(nodes, tf.TensorSpec([], tf.variant))
        return tuple(map(written, datasets))
    except (tf.errors.OpError, ValueError):
        return None


def chained(source: Any, nodes: Sequence[Any]) -> list[Any]:
    """Return nodes, each reading the one before, under names of their own."""
    made = [source]
    for number, node in enumerate(nodes):
        made.append(type(node)())
        made[-1].CopyFrom(node)
        made[-1].name = f"chained_{number}"
        made[-1].input[0] = made[-2].name
    return made


def has_state(root: Operation) -> bool:
    """Return whether iterators of a dataset know of each other: it reshuffles, or caches."""
    return any(
        operation.op in CACHES or (operation.op in SHUFFLES and _reshuffles(operation))
        for operation in root.all()
    )


def _reshuffles(operation: Operation) -> bool:
    try:
        # A buffer of 1 shuffles nothing.
        one = operation.number("buffer_size") == 1
    except NoConstantError:
        one = False
    return operation.flag("reshuffle_each_iteration") and not one


def is_counter(operation: Operation) -> bool:
    """Return whether an operation makes elements one after the other, of one that repeats.

    That is `Dataset.counter`.
    """
    if operation.op != "ScanDataset" or operation.input.op != "RepeatDataset":
        return False
    count = operation.input.value("count")
    return operation.input.input.op == "TensorDataset" and count is not None and int(count) < 0


class NoConstantError(Exception):
    """An argument that TensorFlow computes anew, so that it is unknown here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A function of a graph: the body that `map` or `interleave` applies to an element.

    captured: the nodes of what its last parameters are, None for what is no constant.
    """

    definition: Any
    graph: Graph
    captured: tuple[Any, ...] = ()

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters: the components of an element, then what it captures."""
        return tuple(arg.name for arg in self.definition.signature.input_arg)

    @cached_property
    def nodes(self) -> Mapping[str, Any]:
        """Its nodes by their names."""
        return {node.name: node for node in self.definition.node_def}

    @cached_property
    def returned(self) -> tuple[str, ...]:
        """Where each output comes from: a parameter, or a node behind identities."""
        outputs = (arg.name for arg in self.definition.signature.output_arg)
        return tuple(self.origin(self.definition.ret[name]) for name in outputs)

    @property
    def is_identity(self) -> bool:
        """Whether it returns its parameters as they are (noop_elimination.cc removes such maps)."""
        # A stateful function is not removed even if it returns its input.
        return not self.definition.signature.is_stateful and self.returned == self.parameters

    @property
    def generates(self) -> bool:
        """Whether elements are made by code in Python."""
        return any(node.op == "GeneratorDataset" for node in self.nodes.values())

    def origin(self, tensor: str) -> str:
        """Return the name of the node or parameter that a tensor is, behind identities."""
        name = node_name(tensor)
        node = self.nodes.get(name)
        # `_data_inputs`: an identity may have control inputs besides.
        while node is not None and node.op == "Identity" and len(_data_inputs(node)) == 1:
            name = node_name(_data_inputs(node)[0])
            node = self.nodes.get(name)
        return name

    def inputs(self, name: str) -> tuple[str, ...]:
        """Return the origins of what a node reads."""
        return tuple(self.origin(tensor) for tensor in _data_inputs(self.nodes[name]))

    def op(self, name: str) -> str | None:
        """Return the op of a node, None for a parameter."""
        node = self.nodes.get(name)
        return None if node is None else str(node.op)

    def called(self, name: str) -> Function | None:
        """Return the function that a node applies."""
        return self.graph.function_of(self.nodes[name])

    def constant(self, name: str) -> Any:
        """Return a constant of the function, or one that it captures; None where a node is none."""
        outside = self.parameters[len(self.parameters) - len(self.captured) :]
        if name in outside:
            return constant(self.captured[outside.index(name)])
        return constant(self.nodes.get(name))


def operation_of(dataset: Any) -> Operation:
    """Return the operation that a `tf.data.Dataset` is, with all that it reads.

    Raises:
        UsageError: TensorFlow cannot write it as a graph, as of data on another device; or it is
            being traced, so that no dataset is there yet.
    """
    tf, dataset = tensorflow(), before_copy(dataset)
    # Inside a tf.function the variant is a symbol without a value.
    if not hasattr(dataset._variant_tensor, "numpy"):
        raise UsageError(
            "the dataset is made inside a tf.function or a tf.Graph, where TensorFlow only traces "
            "it; inspect it outside"
        )
    try:
        return written(dataset._variant_tensor)
    except (tf.errors.OpError, ValueError) as error:
        # TensorFlow wraps its reason: "{{..}} REASON [Op:..]".
        said = str(error).partition(" [Op:")[0].rpartition("}} ")[2]
        raise UsageError(
            f"TensorFlow does not write this dataset as a graph: {said}; inspect the dataset "
            "before that stage"
        ) from error


def before_copy(dataset: Any) -> Any:
    """Return what a dataset copies to another device at its end, else the dataset itself.

    TensorFlow writes no graph of what copies; the elements and the iterators are those below.
    """
    here, names = dataset, ("_PrefetchDataset", "_OptionsDataset")
    while type(here).__name__ in names:
        here = here._input_dataset
    return here._input_dataset if type(here).__name__ == "_CopyToDeviceDataset" else dataset


def written(variant: Any) -> Operation:
    """Return the operation that a dataset is, of its tensor."""
    tf = tensorflow()
    # IGNORE: stateful ops (random maps, variables) would otherwise be refused.
    graph = tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=_IGNORE_STATE)
    return Graph(tf.compat.v1.GraphDef.FromString(graph.numpy())).root()


class Graph:
    """What TensorFlow writes of a dataset: nodes, and functions, by their names."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition
        self.nodes: dict[str, Any] = {node.name: node for node in definition.node}
        self._functions = {f.signature.name: f for f in definition.library.function}
        self._made: dict[str, Operation] = {}

    def root(self) -> Operation:
        """Return the operation at the end, with all that it reads."""
        (end,) = (node for node in self.nodes.values() if node.op == "_Retval")
        # Inputs first and without recursion: a pipeline may be thousands of stages long.
        waiting = [node_name(end.input[0])]
        while waiting:
            here = self.nodes[waiting[-1]]
            inputs = filter(self._is_dataset, map(node_name, _data_inputs(here)))
            # A node is made once all its inputs are; until then it stays on the list under them.
            missing = [name for name in inputs if name not in self._made]
            if missing and here.name not in self._made:
                waiting += missing
                continue
            waiting.pop()
            self._made.setdefault(here.name, self._operation(here))
        return self._made[here.name]

    def function_of(self, node: Any) -> Function | None:
        """Return the function that a node applies, None where the graph has none."""
        found = self._functions.get(node.attr["f"].func.name) if "f" in node.attr else None
        return None if found is None else Function(definition=found, graph=self)

    def dataset(self, nodes: Sequence[Any], spec: Any) -> Any:
        """Return the `tf.data.Dataset` that the last of nodes is, which may be beside the graph."""
        tf = tensorflow()
        definition = tf.compat.v1.GraphDef()
        definition.library.CopyFrom(self.definition.library)
        found = {node.name: node for node in nodes}
        for name in [node_name(tensor) for node in nodes for tensor in node.input]:
            if name not in found:
                found |= {below.name: below for below in self.below(self.nodes[name])}
        definition.node.extend(found.values())
        end = definition.node.add(name="dataset", op="_Retval", input=[nodes[-1].name])
        end.attr["T"].type = tf.variant.as_datatype_enum
        end.attr["index"].i = 0
        variant = tf.raw_ops.DatasetFromGraph(graph_def=definition.SerializeToString())
        return tf.data.experimental.from_variant(variant, spec)

    def ops_of_body(self, node: Any) -> set[str]:
        """Return the ops that run when the function of a node is called, to build a dataset."""
        function = self.function_of(node)
        found: set[str] = set()
        for inner in () if function is None else function.nodes.values():
            found.add(inner.op)
            # What a dataset in it applies runs when that is read.
            if not _DATASET.search(inner.op):
                found |= self.ops_in_functions(inner)
        return found

    def ops_in_functions(self, node: Any) -> set[str]:
        """Return the names of all ops in the functions of a node, and of those these call."""
        return {inner.op for inner in self.nodes_in_functions(node)} - self._functions.keys()

    def nodes_in_functions(self, node: Any) -> Iterator[Any]:
        """Yield all nodes in the functions of a node, and in those these call."""
        ahead = [attr.func.name for attr in node.attr.values() if attr.HasField("func")]
        seen: set[str] = set()
        while ahead:
            name = ahead.pop()
            if name in seen or name not in self._functions:
                continue
            seen.add(name)
            for inner in self._functions[name].node_def:
                yield inner
                ahead.append(inner.op)  # a call of a function is an op of its name
                for attr in inner.attr.values():
                    # Attributes may hold one function or a list of them.
                    ahead += [attr.func.name, *(f.name for f in attr.list.func)]

    def below(self, node: Any) -> Iterator[Any]:
        """Yield a node and every node that it needs."""
        ahead, seen = [node.name], set()
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                yield self.nodes[name]
                ahead += map(node_name, self.nodes[name].input)

    def _operation(self, node: Any) -> Operation:
        arguments: dict[str, Any] = {}
        others, datasets = [], []
        # zip is not strict: older graphs may lack inputs that an op got later.
        for argument, tensor in zip(argument_names(node), _data_inputs(node), strict=False):
            if self._is_dataset(name := node_name(tensor)):
                datasets.append(self._made[name])
                continue
            found = self.nodes[name]
            # Constants are often behind identities.
            while found.op == "Identity":
                found = self.nodes[node_name(found.input[0])]
            others.append(found if found.op == "Const" else None)
            # `setdefault`: of a list argument the first element, since they share a name.
            arguments.setdefault(argument, others[-1])
        return Operation(
            node=node, graph=self, inputs=tuple(datasets), arguments=arguments, others=tuple(others)
        )

    def _is_dataset(self, name: str) -> bool:
        return _DATASET.search(self.nodes[name].op) is not None


def node_name(tensor: str) -> str:
    """Return the name of the node of an input, which may name an output of it."""
    return tensor.removeprefix("^").partition(":")[0]


def _data_inputs(node: Any) -> list[str]:
    return [name for name in node.input if not name.startswith("^")]


def argument_names(node: Any) -> list[str]:
    """Return the name that the op has for each input of a node."""
    from tensorflow.python.framework import op_def_registry  # no public name

    definition = op_def_registry.get(node.op)
    if definition is None:
        return [f"input_{index}" for index in range(len(node.input))]
    names: list[str] = []
    for arg in definition.input_arg:
        # A list argument has as many inputs as its attribute says, or as its list of types has.
        count = 1
        if arg.number_attr:
            count = node.attr[arg.number_attr].i
        elif arg.type_list_attr:
            count = len(node.attr[arg.type_list_attr].list.type)
        names += [arg.name] * count
    return names


def constant(node: Any) -> Any:
    """Return the value of a constant as a NumPy array, None for any other node."""
    import numpy as np

    if node is None or node.op != "Const":
        return None
    tf = tensorflow()
    tensor = node.attr["value"].tensor
    kind = tf.dtypes.as_dtype(tensor.dtype)
    if kind in (tf.resource, tf.variant):
        return None
    # Not tf.make_ndarray, which does not read the texts that the runtime writes.
    # Texts are kept as objects: a NumPy bytes array would drop zeros at the end.
    value = tf.io.parse_tensor(tensor.SerializeToString(), kind).numpy()
    return np.array(value, object) if kind == tf.string else np.asarray(value)


# The options of a pipeline, as they are in force at its end.


class Options(NamedTuple):
    """The options of a whole pipeline: those about its order, and two that take stages out.

    Options that are set twice are merged, and the outermost wins, so only what is in force counts.

    noop_elimination: `experimental_optimization.noop_elimination`.
    op_determinism: `tf.config.experimental.enable_op_determinism`, which stands above them.
    """

    stated: WithOptions = WithOptions()
    noop_elimination: bool | None = None
    op_determinism: bool = False

    @property
    def hands_out_what_is_ready(self) -> bool:
        """Whether parallel stages that say nothing else yield what is ready first."""
        return self.stated.deterministic is False and not self.op_determinism

    def in_force(self, stated: WithOptions) -> WithOptions:
        """Return `with_options` with what it states and nothing later overrides."""
        kept = {
            name: getattr(stated, name)
            for name in WithOptions.attributes
            # An option counts if it has the value that is in force at the end.
            if getattr(stated, name) == getattr(self.stated, name)
            and not (self.op_determinism and name == "deterministic")
        }
        return WithOptions(**kept)


def options_of(operation: Operation) -> WithOptions:
    """Return what one `with_options` states."""
    from tensorflow.core.framework import dataset_options_pb2  # no public name

    message = dataset_options_pb2.Options.FromString(operation.attributes["serialized_options"].s)
    said: dict[str, Any] = {}
    for field_name, attribute in WithOptions.attributes.items():
        within, _, last = attribute.rpartition(".")
        # Some options are in a message of their own.
        part, name = message.optimization_options if within else message, last
        name = name.removeprefix("experimental_")
        # Members of a oneof are set or not.
        is_set = part.WhichOneof(f"optional_{name}") is not None
        said[field_name] = bool(getattr(part, name)) if is_set else None
    return WithOptions(**said)


def options_in_force(dataset: Any) -> Options:
    """Return the options of a whole `tf.data.Dataset`."""
    from tensorflow.python.framework import config  # no public name

    options = dataset.options()

    def of(attribute: str) -> bool | None:  # older versions of TensorFlow have no warm start
        within, _, name = attribute.rpartition(".")
        found: bool | None = getattr(getattr(options, within) if within else options, name, None)
        return found

    return Options(
        stated=WithOptions(**{name: of(path) for name, path in WithOptions.attributes.items()}),
        noop_elimination=of("experimental_optimization.noop_elimination"),
        op_determinism=bool(config.is_op_determinism_enabled()),
    )
