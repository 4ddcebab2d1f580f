"""The graph of a `tf.data.Dataset`: its operations, their arguments and functions.

The graph is what TensorFlow itself writes of a dataset (`tf.raw_ops.DatasetToGraphV2`): it is
public, holds every constant, and survives what `_inputs()` of the Python objects does not: the
wrapping by `tf.distribute`, whose sharding is already in it, `enumerate` and `choose`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from shardctl.errors import UsageError
from shardctl.stages.stages import WithOptions
from shardctl.tfds.imports import tensorflow

LONGEST_RANGE = (1 << 62) - 1  # one beyond this counts on for ever, as that of `enumerate` does
_IGNORE_STATE = 1  # of stateful ops, tf.data.experimental.ExternalStatePolicy.IGNORE
_DATASET = re.compile(r"Dataset(V\d+)?$")
_IDENTITIES = frozenset(("Identity",))
# Operations that are the same in one of several versions.
MAPS = ("MapDataset", "ParallelMapDatasetV2")
SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
CACHES = ("CacheDataset", "CacheDatasetV2")
BATCHES = (
    "BatchDataset",
    "BatchDatasetV2",
    "ParallelBatchDataset",
    "PaddedBatchDataset",
    "PaddedBatchDatasetV2",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Operation:
    """One dataset operation: its op, its datasets, and its arguments by the names of the op.

    object_name: what TensorFlow calls the dataset object; two operations of one name are one
        object that is used twice. None where TensorFlow gives none.
    arguments: the nodes of the other inputs, None for what is no constant.
    """

    op: str
    object_name: str | None = None
    inputs: tuple[Operation, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    others: tuple[Any, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    library: Library = field(repr=False)

    @property
    def input(self) -> Operation:
        """The one dataset that it reads."""
        return self.inputs[0]

    def all(self) -> Iterator[Operation]:
        """Yield it and all that it reads, each once."""
        waiting, seen = [self], set()
        while waiting:
            operation = waiting.pop()
            if id(operation) not in seen:
                seen.add(id(operation))
                yield operation
                waiting += operation.inputs

    def number(self, name: str) -> int:
        """Return an argument that is a whole number.

        >>> Operation(op="TakeDataset", library=Library({})).number("count")
        Traceback (most recent call last):
        shardctl.tfds.recognizing.graph.NoConstantError: count of TakeDataset is no constant
        """
        value = self.value(name)
        if getattr(value, "size", 0) != 1:
            raise NoConstantError(f"{name} of {self.op} is no constant")
        return int(value)

    def value(self, name: str) -> Any:
        """Return an argument as a NumPy array, None where it is no constant."""
        return constant(self.arguments.get(name))

    def text(self, name: str) -> str:
        """Return an attribute that is a text, empty where there is none."""
        attribute = self.attributes.get(name)
        return "" if attribute is None else attribute.s.decode()

    def flag(self, name: str) -> bool:
        """Return an attribute that is true or false."""
        attribute = self.attributes.get(name)
        return attribute is not None and bool(attribute.b)

    @property
    def shapes(self) -> tuple[Any, ...]:
        """The shapes of the components of its elements; a length that differs is -1."""
        attribute = self.attributes.get("output_shapes")
        return () if attribute is None else tuple(attribute.list.shape)

    @property
    def function(self) -> Function | None:
        """The function that it applies, None without one."""
        attribute = self.attributes.get("f")
        return None if attribute is None else self.library.function(attribute.func.name)


def call_name(op: str) -> str:
    """Return the call of tf.data that makes an operation, or an object of a class named like it.

    >>> call_name("GroupByWindowDataset"), call_name("LegacyParallelInterleaveDatasetV2")
    ('group_by_window', 'interleave')
    """
    name = re.sub(r"^(Legacy|Parallel|Global)*", "", _DATASET.sub("", op))
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


class NoConstantError(Exception):
    """An argument that TensorFlow computes anew, so that nobody can say what it is."""


class Library:
    """The functions of a graph by their names."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self._functions = functions

    def function(self, name: str) -> Function | None:
        """Return the function of a name, None where the graph has none."""
        found = self._functions.get(name)
        return None if found is None else Function(definition=found, library=self)


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A function of a graph: the body that `map` or `interleave` applies to an element."""

    definition: Any
    library: Library

    @property
    def name(self) -> str:
        """The name, which tells the Python function: `__inference_Dataset_map_decode_86`."""
        return str(self.definition.signature.name)

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
        return not self.definition.signature.is_stateful and self.returned == self.parameters

    def origin(self, tensor: str) -> str:
        """Return the name of the node or parameter that a tensor is, behind identities."""
        name = tensor.partition(":")[0]
        node = self.nodes.get(name)
        while node is not None and node.op in _IDENTITIES and len(_data_inputs(node)) == 1:
            name = _data_inputs(node)[0].partition(":")[0]
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
        node = self.nodes[name]
        return self.library.function(node.attr["f"].func.name) if "f" in node.attr else None

    def constant(self, name: str) -> Any:
        """Return a constant of the function, None where a node is none."""
        return constant(self.nodes.get(name))


def operation_of(dataset: Any) -> Operation:
    """Return the operation that a `tf.data.Dataset` is, with all that it reads.

    Raises:
        UsageError: TensorFlow cannot write it as a graph, as of data on another device; or it is
            being traced, so that no dataset is there yet.
    """
    tf = tensorflow()
    if not hasattr(dataset._variant_tensor, "numpy"):
        raise UsageError(
            "the dataset is made inside a tf.function or a tf.Graph, where TensorFlow only traces "
            "it; inspect it outside"
        )
    definition = tf.compat.v1.GraphDef()
    try:
        written = tf.raw_ops.DatasetToGraphV2(
            input_dataset=dataset._variant_tensor,
            external_state_policy=_IGNORE_STATE,
            strip_device_assignment=True,
        )
        definition.ParseFromString(written.numpy())
    except (tf.errors.OpError, ValueError) as error:
        said = str(error).partition(" [Op:")[0].rpartition("}} ")[2]
        raise UsageError(
            f"TensorFlow does not write this dataset as a graph: {said}; inspect the dataset "
            "before that stage"
        ) from error
    return _Graph(definition).root()


class _Graph:
    def __init__(self, definition: Any) -> None:
        self._nodes = {node.name: node for node in definition.node}
        self._library = Library({f.signature.name: f for f in definition.library.function})
        self._made: dict[str, Operation] = {}

    def root(self) -> Operation:
        (end,) = (node for node in self._nodes.values() if node.op == "_Retval")
        return self._operation(_name(end.input[0]))

    def _operation(self, name: str) -> Operation:
        # Inputs first and without recursion: a pipeline may be thousands of stages long.
        waiting = [name]
        while waiting:
            here = waiting[-1]
            missing = [
                _name(each)
                for each in _data_inputs(self._nodes[here])
                if self._is_dataset(_name(each)) and _name(each) not in self._made
            ]
            if missing and here not in self._made:
                waiting += missing
                continue
            waiting.pop()
            self._made.setdefault(here, self._make(self._nodes[here]))
        return self._made[name]

    def _make(self, node: Any) -> Operation:
        arguments: dict[str, Any] = {}
        others = []
        datasets = []
        for argument, name in zip(_argument_names(node), _data_inputs(node), strict=False):
            source = _name(name)
            if self._is_dataset(source):
                datasets.append(self._made[source])
                continue
            source_node = self._constant_of(source)
            arguments.setdefault(argument, source_node)
            others.append(source_node)
        return Operation(
            op=node.op,
            object_name=_object_name(node),
            inputs=tuple(datasets),
            arguments=arguments,
            others=tuple(others),
            attributes=node.attr,
            library=self._library,
        )

    def _constant_of(self, name: str) -> Any:
        node = self._nodes[name]
        while node.op in _IDENTITIES:
            node = self._nodes[_name(node.input[0])]
        return node if node.op == "Const" else None

    def _is_dataset(self, name: str) -> bool:
        return _DATASET.search(self._nodes[name].op) is not None


def _name(tensor: str) -> str:
    return tensor.partition(":")[0]


def _data_inputs(node: Any) -> list[str]:
    return [name for name in node.input if not name.startswith("^")]


def _object_name(node: Any) -> str | None:
    """Return the name that TensorFlow gives the object; one by a script may be that of several."""
    if "metadata" not in node.attr:
        return None
    from tensorflow.core.framework import dataset_metadata_pb2  # no public name

    name: bytes = dataset_metadata_pb2.Metadata.FromString(node.attr["metadata"].s).name
    return name.decode() if b":" in name else None


def _argument_names(node: Any) -> list[str]:
    """Return the name that the op has for each input of a node."""
    from tensorflow.python.framework import op_def_registry  # no public name

    definition = op_def_registry.get(node.op)
    if definition is None:
        return [f"input_{index}" for index in range(len(node.input))]
    names: list[str] = []
    for arg in definition.input_arg:
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
    value = tf.io.parse_tensor(tensor.SerializeToString(), kind).numpy()
    return np.array(value, object) if kind == tf.string else np.asarray(value)


def num_rows(node: Any) -> int | None:
    """Return the length of a constant along its first axis, without reading its values."""
    if node is None or node.op != "Const":
        return None
    shape: Sequence[Any] = node.attr["value"].tensor.tensor_shape.dim
    return int(shape[0].size) if shape else None


# The options of a pipeline, as they are in force at its end.


@dataclass(frozen=True, kw_only=True)
class Options:
    """What options say about the order, for the whole of a pipeline.

    Options that are set twice are merged, and the outermost wins, so only what is in force counts.

    noop_elimination: `experimental_optimization.noop_elimination`.
    op_determinism: `tf.config.experimental.enable_op_determinism`, which stands above them.
    """

    deterministic: bool | None = None
    fusion: bool | None = None
    optimizations: bool | None = None
    warm_start: bool | None = None
    noop_elimination: bool | None = None
    op_determinism: bool = False

    @property
    def removes_nothing_done(self) -> bool:
        """Whether TensorFlow takes stages out that do nothing."""
        if self.noop_elimination is None:
            return self.optimizations is not False
        return self.noop_elimination

    @property
    def hands_out_what_is_ready(self) -> bool:
        """Whether parallel stages that say nothing else hand out what is ready first."""
        return self.deterministic is False and not self.op_determinism

    def in_force(self, stated: Options) -> WithOptions:
        """Return `with_options` with what it states and nothing later overrides."""
        said = {
            each.name: value
            for each in fields(WithOptions)
            if (value := getattr(stated, each.name)) is not None
            and value == getattr(self, each.name)
        }
        if self.op_determinism:
            said.pop("deterministic", None)
        return WithOptions(**said)


# What each field is in the messages of TensorFlow's graphs, and within which.
_WITHIN = {
    "deterministic": ("deterministic", ""),
    "fusion": ("shuffle_and_repeat_fusion", "optimization"),
    "optimizations": ("apply_default_optimizations", "optimization"),
    "warm_start": ("warm_start", ""),
    "noop_elimination": ("noop_elimination", "optimization"),
}


def options_of(operation: Operation) -> Options:
    """Return what one `with_options` states."""
    from tensorflow.core.framework import dataset_options_pb2  # no public name

    message = dataset_options_pb2.Options.FromString(operation.attributes["serialized_options"].s)
    said: dict[str, Any] = {}
    for field_name, (name, within) in _WITHIN.items():
        part = message.optimization_options if within else message
        # Members of a oneof are set or not.
        is_set = part.WhichOneof(f"optional_{name}") is not None
        said[field_name] = bool(getattr(part, name)) if is_set else None
    return Options(**said)


def options_in_force(dataset: Any) -> Options:
    """Return the options of a whole `tf.data.Dataset`."""
    from tensorflow.python.framework import config  # no public name

    options = dataset.options()
    optimization = options.experimental_optimization
    return Options(
        deterministic=options.deterministic,
        fusion=optimization.shuffle_and_repeat_fusion,
        optimizations=optimization.apply_default_optimizations,
        warm_start=getattr(options, "experimental_warm_start", None),
        noop_elimination=optimization.noop_elimination,
        op_determinism=bool(config.is_op_determinism_enabled()),
    )
