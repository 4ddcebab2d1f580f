"""A pipeline as Python code: TFDS's readers and the tf.data calls behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from shardctl.code import reader
from shardctl.code.python_text import call, code_of_host, keywords, literal, module
from shardctl.errors import UsageError
from shardctl.order.order import Order, Origin
from shardctl.order.resolved_spec import refuse_unreadable
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.stages import stages as ast
from shardctl.stages.part import OfTensorflow, Source, Stage, named_in_tf

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
    """The code of a pipeline: `lines` make `ds`, after what `functions` define.

    builder: what makes the builder of all readers; of several datasets each is in `lines`.

    Raises:
        UsageError: a stage that has no public call, or a reader that reads nothing.
        DatasetError: `as_dataset` does not read a format.
    """

    def __init__(self, order: Order, spec: str) -> None:
        """`spec` is what a reader reads that names no spec itself."""
        self._settings = order.settings
        own = Origin(name="", dataset=order.dataset, spec=spec)
        self._origins = order.origins or {ast.Read(): own}
        self._num_inputs = 0
        # A shared object is written once; each further use is the same variable, so that its
        # iterators take their seeds in turn there as well.
        self._shared: dict[str, str] = {}
        self.lines: list[str] = []
        self.functions: Sequence[str] = ()
        # One builder for all readers if all would be written alike; else each before its reader.
        builders = [list(reader.builder(one.dataset)) for one in self._origins.values()]
        alike = all(lines == builders[0] for lines in builders)
        self.builder: list[str] = builders[0] if alike else []
        self._builder, self._host = self.builder, list[str]()
        self._pipeline(_as_stages(order), "ds")

    def _pipeline(self, pipeline: ast.Pipeline, name: str) -> None:
        self._source(pipeline.source, name)
        for stage in pipeline.stages:
            self._stage(stage, name)

    def _input(self, pipeline: ast.Pipeline) -> str:
        """Write a pipeline that another one combines; return its name."""
        self._num_inputs += 1
        name = f"ds_{self._num_inputs}"
        self._pipeline(pipeline, name)
        return name

    def _source(self, source: Source, name: str) -> None:
        match source:
            case ast.Read():
                self._read(source, name)
            case ast.Range():
                self._static(name, "range", str(source.stop))
            case ast.Values():
                values = f"tf.constant({list(source.values)}, tf.int64)"
                self._static(name, "from_tensor_slices", values)
            case ast.Shared():
                if source.label not in self._shared:
                    self._shared[source.label] = self._input(source.pipeline)
                self.lines.append(f"{name} = {self._shared[source.label]}")
            case ast.Zip():
                # A tuple of one, which zip takes otherwise than the dataset itself.
                one = "," if len(source.inputs) == 1 else ""
                self._static(name, "zip", f"({self._inputs(source.inputs)}{one})")
            case ast.SampleFromDatasets():
                self._sample(source, name)
            case ast.ChooseFromDatasets():
                inputs, choices = f"[{self._inputs(source.inputs)}]", self._input(source.choices)
                stop = f"stop_on_empty_dataset={source.stop_on_empty}"
                self._static(name, source.name, inputs, choices, stop)
            case _:
                raise UsageError(f"--stages: there is no code for {source.name}")

    def _static(self, name: str, method: str, *arguments: str) -> None:
        self.lines += call(f"{name} = tf.data.Dataset.{method}", arguments)

    def _inputs(self, inputs: Sequence[ast.Pipeline]) -> str:
        return ", ".join(self._input(one) for one in inputs)

    def _read(self, source: ast.Read, name: str) -> None:
        origin = self._origins[source]
        settings = settings_of_read(self._settings, source)
        refuse_unreadable(origin.dataset)
        builder, host = list(reader.builder(origin.dataset)), list(reader.host(settings))
        if self.lines:
            self.lines.append("")
        # Written again only where it differs from the one in force at this line.
        self.lines += [] if builder == self._builder else builder
        self.lines += [] if host == self._host else host
        self._builder, self._host = builder, host or self._host
        self.lines += [
            *reader.read_config(
                settings, ordered=origin.dataset.ordered, has_cardinality=source.has_cardinality
            ),
            *reader.as_dataset(name, reader.split_of_host(origin.spec, settings), settings),
        ]
        if shard := code_of_host(settings).examples:
            self.lines.append(f"{name} = {name}{shard}")

    def _sample(self, source: ast.SampleFromDatasets, name: str) -> None:
        if isinstance(source.seed, tuple):
            raise _no_kernel_seeds(source.name)
        inputs = f"[{self._inputs(source.inputs)}]"
        named = {key: literal(value) for key, value in named_in_tf(source).items()}
        wide = named.pop("weights_dtype", None)
        if source.weights is not None:
            weights = repr(list(source.weights))
            # An array, not a tensor: of a tensor TensorFlow keeps the inputs of weight 0.
            named["weights"] = f"tf.constant({weights}, tf.float64).numpy()" if wide else weights
        self._static(name, source.name, inputs, *keywords(named))

    def _stage(self, stage: Stage, name: str) -> None:
        if isinstance(stage, ast.Concatenate):
            other = self._input(stage.other)
            self.lines.append(f"{name} = {name}.concatenate({other})")
            return
        if isinstance(stage, ast.Map):
            self.functions = _MAPPED
        self.lines += stage_code(stage, name)


def _as_stages(order: Order) -> ast.Pipeline:
    """Return the stages behind the reader; that a host reads its part is said of the reader."""
    settings = order.settings
    pipeline = stages_of(replace(settings, host=None))
    if order.goes_on is None:
        return pipeline
    # The files repeat indefinitely, and the order is followed as far as `epochs` says.
    end = ast.Take(count=order.epoch_size * settings.epochs)
    batches = [stage for stage in pipeline.stages if isinstance(stage, ast.Batch)]
    # Cut before the batches, so that the take counts examples.
    others = pipeline.stages[: len(pipeline.stages) - len(batches)]
    return replace(pipeline, stages=(*others, end, *batches))


def stage_code(stage: Stage, name: str) -> Iterator[str]:
    """Yield what puts a stage behind `name`; functions of the script are called `mapped`.

    >>> list(stage_code(ast.Batch(size=4, drop_remainder=True), "ds"))
    ['ds = ds.batch(4, drop_remainder=True)']

    Raises:
        UsageError: it has no public call.
    """
    if isinstance(stage, ast.WithOptions):
        yield from _options(stage, name)
        return
    if isinstance(stage, ast.AssertCardinality):
        asserted = f"tf.data.experimental.assert_cardinality({stage.count})"
        yield from call(f"{name} = {name}.apply", [asserted])
        return
    if isinstance(stage, ast.Shuffle) and isinstance(stage.seed, tuple):
        raise _no_kernel_seeds(stage.name)
    found = stage.in_tf()
    if found is None:
        raise UsageError(
            f"--stages: there is no code for {stage.name}, whose function is in the script"
        )
    by_name = {key: _value(value) for key, value in found.by_name.items()}
    arguments = [*["mapped"] * found.takes_function, *map(_value, found.by_place)]
    yield from call(f"{name} = {name}.{found.method}", [*arguments, *keywords(by_name)])


def _value(value: Any) -> str:
    return f"tf.{value}" if isinstance(value, OfTensorflow) else literal(value)


def _options(stage: ast.WithOptions, name: str) -> Iterator[str]:
    yield "options = tf.data.Options()"
    for field, attribute in stage.attributes.items():
        value = getattr(stage, field)
        if value is not None:
            yield f"options.{attribute} = {literal(value)}"
    yield f"{name} = {name}.with_options(options)"


def _no_kernel_seeds(name: str) -> UsageError:
    return UsageError(
        f"--stages: {name} has the seeds of its kernel, which no public call takes; give the "
        "seed of the script"
    )


def order_module(
    order: Order, spec: str, notes: Iterable[str], *behind: Iterable[str], imported: str = ""
) -> Iterator[str]:
    """Yield code that makes `ds` with an order, under `notes`, and what stands behind it."""
    made = StagesCode(order, spec)
    seed = list(_global_seed(order))
    code = [*made.functions, *made.lines, *seed, *made.builder]
    yield from module(
        notes,
        reader.imports(code, *([imported] if imported else [])),
        made.functions,
        [*seed, *made.builder],
        made.lines,
        *behind,
    )


def _global_seed(order: Order) -> Iterator[str]:
    settings = order.settings
    if settings.global_seed is not None:
        yield "# It counts when the dataset is made, so nothing that draws a seed may come between."
        yield f"tf.random.set_seed({literal(settings.global_seed)})"
    elif order.shuffles or settings.shuffles_files:
        yield "# With a tf.random.set_seed in force (keras.utils.set_random_seed sets it too) the"
        yield "# order is another one."
