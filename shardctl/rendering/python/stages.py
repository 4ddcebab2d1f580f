"""A pipeline with stages as code: TFDS's readers, and the calls of tf.data in their order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatchmethod
from typing import Any

from shardctl.core.order.staged import StagedOrder
from shardctl.core.phrase import phrase
from shardctl.core.settings.reads import settings_of_read
from shardctl.core.stages import stages as call_of_tf
from shardctl.core.stages.part import OfTensorflow, Source, Stage, TfCall
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.rendering.python import reader
from shardctl.rendering.python.source import call, code_of_host, keywords, literal

# TensorFlow leaves a map out that returns what it is given, and a shuffle and a repeat around it
# then become one.
_MAPPED = (
    "def mapped(*parts):",
    '    """Stand for the function of the script: one that does nothing would be left out."""',
    "",
    "    def changed(part):",
    "        if part.dtype == tf.string:",
    '            return tf.strings.join([part, ""])',
    "        if part.dtype == tf.bool:",
    "            return tf.logical_or(part, False)",
    "        return part + tf.zeros([], part.dtype)",
    "",
    "    parts = tf.nest.map_structure(changed, parts)",
    "    return parts if len(parts) > 1 else parts[0]",
)


class StagesCode:
    """The code of a pipeline: `lines` make `ds`, after what `functions` and `listed` define.

    Raises:
        UsageError: a stage that has no public call, or a reader that reads nothing.
        DatasetError: `as_dataset` does not read a format.
    """

    def __init__(self, order: StagedOrder) -> None:
        self._order = order
        self._num_inputs = 0
        self._shared: dict[str, str] = {}
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.listed: list[str] = []
        self._maps = False
        self._pipeline(order.stages, "ds")
        if self._maps:
            self.functions = [*self.functions, *(["", ""] if self.functions else []), *_MAPPED]

    def _pipeline(self, pipeline: call_of_tf.Pipeline, name: str) -> None:
        self._source(pipeline.source, name)
        for stage in pipeline.stages:
            self._stage(stage, name)

    def _input(self, pipeline: call_of_tf.Pipeline) -> str:
        """Write a pipeline that another one combines; return its name."""
        self._num_inputs += 1
        name = f"ds_{self._num_inputs}"
        self._pipeline(pipeline, name)
        return name

    @singledispatchmethod
    def _source(self, source: Source, name: str) -> None:
        raise UsageError(phrase("{stages}: there is no code for {}", source.name))

    @_source.register
    def _(self, source: call_of_tf.Read, name: str) -> None:
        origin = self._order.origins[source]
        settings = settings_of_read(self._order.settings, source)
        refuse_unreadable(origin.dataset)
        listed, sorts = reader.file_order(settings)
        if listed and self.listed not in ([], listed):
            raise UsageError(
                phrase("{stages}: two readers have a {file_order} each; code is written for one")
            )
        self.listed = self.listed or listed
        self.functions = self.functions or sorts
        if self.lines:
            self.lines.append("")
        self.lines += [
            *reader.builder(origin.dataset),
            *reader.host(settings),
            *reader.read_config(
                settings,
                ordered=origin.dataset.ordered,
                has_cardinality=source.has_cardinality,
            ),
            *reader.as_dataset(name, reader.split_of_host(origin.spec, settings), settings),
        ]
        if shard := code_of_host(settings).examples:
            self.lines.append(f"{name} = {name}{shard}")

    @_source.register
    def _(self, source: call_of_tf.Range, name: str) -> None:
        self.lines.append(f"{name} = tf.data.Dataset.range({source.stop})")

    @_source.register
    def _(self, source: call_of_tf.Values, name: str) -> None:
        values = f"tf.constant({list(source.values)}, tf.int64)"
        self.lines += call(f"{name} = tf.data.Dataset.from_tensor_slices", [values])

    @_source.register
    def _(self, source: call_of_tf.Shared, name: str) -> None:
        if source.label not in self._shared:
            self._shared[source.label] = self._input(source.pipeline)
        self.lines.append(f"{name} = {self._shared[source.label]}")

    @_source.register
    def _(self, source: call_of_tf.Zip, name: str) -> None:
        inputs = [self._input(one) for one in source.inputs]
        one = "," if len(inputs) == 1 else ""
        self.lines += call(f"{name} = tf.data.Dataset.zip", [f"({', '.join(inputs)}{one})"])

    @_source.register
    def _(self, source: call_of_tf.SampleFromDatasets, name: str) -> None:
        if isinstance(source.seed, tuple):
            raise _no_kernel_seeds(source.name)
        arguments = [f"[{', '.join(self._input(one) for one in source.inputs)}]"]
        named: dict[str, str] = {}
        if source.weights is not None:
            weights = repr(list(source.weights))
            wide = source.weights_dtype == "float64"
            # An array, not a tensor: of a tensor TensorFlow keeps the inputs of weight 0.
            named["weights"] = f"tf.constant({weights}, tf.float64).numpy()" if wide else weights
        if source.seed is not None:
            named["seed"] = literal(source.seed)
        if source.stop_on_empty:
            named["stop_on_empty_dataset"] = "True"
        if source.rerandomize is not None:
            named["rerandomize_each_iteration"] = literal(source.rerandomize)
        self.lines += call(
            f"{name} = tf.data.Dataset.sample_from_datasets", [*arguments, *keywords(named)]
        )

    @_source.register
    def _(self, source: call_of_tf.ChooseFromDatasets, name: str) -> None:
        inputs = f"[{', '.join(self._input(one) for one in source.inputs)}]"
        choices = self._input(source.choices)
        stop = f"stop_on_empty_dataset={source.stop_on_empty}"
        self.lines += call(
            f"{name} = tf.data.Dataset.choose_from_datasets", [inputs, choices, stop]
        )

    def _stage(self, stage: Stage, name: str) -> None:
        if isinstance(stage, call_of_tf.Concatenate):
            other = self._input(stage.other)
            self.lines.append(f"{name} = {name}.concatenate({other})")
            return
        if isinstance(stage, call_of_tf.WithOptions):
            self.lines += _options(stage, name)
            return
        if isinstance(stage, call_of_tf.AssertCardinality):
            asserted = f"tf.data.experimental.assert_cardinality({stage.count})"
            self.lines += call(f"{name} = {name}.apply", [asserted])
            return
        if isinstance(stage, call_of_tf.Shuffle) and isinstance(stage.seed, tuple):
            raise _no_kernel_seeds(stage.name)
        found = stage.in_tf()
        if found is None:
            raise UsageError(
                phrase(
                    "{stages}: there is no code for {}, whose function is in the script", stage.name
                )
            )
        self._maps |= found.takes_function
        self.lines += call(f"{name} = {name}.{found.method}", _arguments(found))


def _arguments(found: TfCall) -> list[str]:
    function = ["mapped"] if found.takes_function else []
    by_name = {name: _value(value) for name, value in found.by_name.items()}
    return [*function, *map(_value, found.by_place), *keywords(by_name)]


def _value(value: Any) -> str:
    return f"tf.{value}" if isinstance(value, OfTensorflow) else literal(value)


def _options(stage: call_of_tf.WithOptions, name: str) -> Iterator[str]:
    yield "options = tf.data.Options()"
    for field, attribute in stage.attributes.items():
        value = getattr(stage, field)
        if value is not None:
            yield f"options.{attribute} = {literal(value)}"
    yield f"{name} = {name}.with_options(options)"


def _no_kernel_seeds(name: str) -> UsageError:
    return UsageError(
        phrase(
            "{stages}: {} has the seeds of its kernel, which no public call takes; give the seed "
            "of the script",
            name,
        )
    )
