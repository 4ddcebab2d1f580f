"""Settings as real TFDS and tf.data calls, and the rest of a pipeline with stages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.text import quoted
from shardctl.base.tfds_rules import Loop
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.order.resolved_spec import refuse_unreadable
from shardctl.order.sources import spec_of_reader
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings, refuse_loader
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.spec.host import Host, HostBy
from shardctl.stages import stages as call
from shardctl.stages.part import KernelPair, OfTensorflow, Source, Stage, named_in_tf
from shardctl.stages.stages import Read
from shardctl.tfds.builder_layout import Builder, builder_of, dataset_of
from shardctl.tfds.imports import tensorflow, tensorflow_datasets, without_autograph
from shardctl.tfds.inspecting.inspect import Inspected, inspected
from shardctl.tfds.inspecting.watch import Iterators, Lines, Returned, clones_of, is_dataset
from shardctl.tfds.training.edited_graph import NotRebuildable
from shardctl.tfds.training.iterating_code import IteratingCode, random_states, read_again
from shardctl.tfds.training.own_elements import OwnElements, element_after
from shardctl.tfds.training.read_config import check_global_seed, dataset_for, global_seed_of
from shardctl.tfds.training.shuffle_kernel import kernel_shuffle
from shardctl.verbs.resume.apply_plan import check_same_dataset

Transform = Callable[[Any], Any]


@checked
def pipeline(
    builder: Builder,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
    **keywords: Unpack[OrderSettings],
) -> Any:
    """Return the `tf.data.Dataset` that settings describe, of TFDS's own reader and tf.data.

    The calls, in their order: `tf.random.set_seed(settings.global_seed)` where there is one (what
    was in force before is so again afterwards), `builder.as_dataset` with a `tfds.ReadConfig`,
    `map(transform)`, then `shard`, `shuffle`, `repeat` and `batch`, each where the settings have
    it; or `settings.stages`, call by call. So iterating gives the order that `shardctl simulate`
    predicts for pass 0, and iterating again that of pass 1. A map among the stages leaves elements
    as they are; a reader of stages that names a dataset of its own finds it as `shardctl` does, in
    its folder.

    `transform` is a function of one example; it makes examples fit into a batch, or leaves of them
    `example["tfds_id"]` (a string scalar) with `add_tfds_id`. `decoders` is TFDS's own argument.

    Where the files repeat without end, the dataset is cut after `settings.epochs` of them. A cycle
    of "auto" is read as the number that it comes to on `settings.cpus`.

    Raises:
        UnpredictableOrderError: the order is nondeterministic.
        UsageError: a global seed is in force in TensorFlow that the settings do not have and that
            changes the order (see `check_global_seed`); a bad spec.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    settings = as_settings(settings)
    refuse_loader(settings, "shardctl.tfds.pipeline", "simulate as code has its own pipeline")
    # TensorFlow first: without it nothing else is worth checking.
    tf = tensorflow()
    dataset = dataset_of(builder)
    refuse_unreadable(dataset)
    planned = plan_order(dataset, spec, settings)
    # A global seed of the settings is set below; otherwise one in force must not change the order.
    if settings.global_seed is None:
        check_global_seed(settings)

    def read_of(part: Read) -> Any:
        # A reader without `data` reads the builder; others name their dataset.
        own, of_own = (builder, dataset) if part.data is None else _referred(part.data)
        own_settings = settings_of_read(settings, part)
        config = tfds_config(own_settings, of_own, add_tfds_id=add_tfds_id)
        # `&=`: it is off already for files that repeat.
        config.assert_cardinality &= part.has_cardinality
        made = own.as_dataset(
            split=split_of_host(spec_of_reader(part, of_own, spec), own_settings),
            read_config=config,
            shuffle_files=own_settings.shuffles_files,
            decoders=decoders,
        )
        if transform is not None:
            made = made.map(transform, num_parallel_calls=tf.data.AUTOTUNE)
        return made

    # A count of examples is asked only if the stages need it, as for files that repeat.
    stages = stages_of(settings, lambda: planned.order.num_examples)
    # tf.data reads the global seed while a dataset is built, so all calls are inside.
    with global_seed_of(settings):
        return StageCalls(reader=read_of).dataset(stages)


def _referred(reference: str) -> tuple[Any, Dataset]:
    """Return the builder of a dataset that a reader names, and the dataset."""
    dataset = as_dataset(reference)
    refuse_unreadable(dataset)
    if dataset.data_dir is None:
        raise UsageError(f"read(.., data={quoted(reference)}): its files are not on this machine")
    return builder_of(dataset), dataset


def tfds_config(settings: ReadSettings, dataset: Dataset, *, add_tfds_id: bool) -> Any:
    """Return the settings as a `tfds.ReadConfig`."""
    config = tensorflow_datasets().ReadConfig(
        add_tfds_id=add_tfds_id,
        shuffle_seed=settings.shuffle_seed,
        shuffle_reshuffle_each_iteration=settings.reshuffle,
        interleave_cycle_length=settings.cycle_length(ordered=dataset.ordered),
        interleave_block_length=settings.block,
        input_context=input_context_of_host(settings),
    )
    if settings.deterministic is not None:
        config.options.deterministic = settings.deterministic
    if settings.reverse:
        # The sort function receives TFDS's file instructions in shard order.
        config.experimental_interleave_sort_fn = lambda files: files[::-1]
    if settings.file_order is not None:
        config.experimental_interleave_sort_fn = _by_list(settings.file_order)
    if settings.is_endless:
        # TFDS asserts the number of one epoch, and would cache a stream without end.
        config.repeat_filenames = True
        config.assert_cardinality = config.try_autocache = False
    return config


def _by_list(names: tuple[str, ...]) -> Callable[[list[Any]], list[Any]]:
    """Return the sort function for a list of base names, or ends of paths where those repeat."""
    # Base name -> indices in the list; more than one where folders have files of one name.
    ranks: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        ranks.setdefault(name.rpartition("/")[2], []).append(index)

    def rank(file: Any) -> int:
        found = ranks.get(file.basename(), [])
        if len(found) > 1:
            # Then the end of the path decides, from a "/" on.
            path = str(file.filename)
            found = [i for i in found if path.endswith(f"/{names[i].strip('/')}")]
        # Not listed, or not told apart: an order would be a guess.
        if len(found) != 1:
            raise UsageError(f"the file order has no one place for {quoted(file.filename, 200)}")
        return found[0]

    return lambda files: sorted(files, key=rank)


# The rest of a pipeline with stages: its real dataset, made of the examples that are left.

MakeReal = Callable[[], Any]  # the real dataset of a pipeline, the same one each time


def rest_of_plan(
    builder: Any,
    plan: ResumePlan,
    *,
    allow_version: bool,
    checks_seed: bool,
    real: MakeReal | None,
    **how: Any,
) -> Any:
    """Return what is left of a plan whose settings have stages, batches as they were.

    `checks_seed` and `real` are those of `dataset_to_resume`; `how` are the arguments of `pipeline`
    for what an example becomes.

    Raises:
        DatasetError: the dataset is another one or has changed.
        UsageError: the plan ends within a batch; a global seed in force as for `resume`.
    """
    # Every check comes before the dataset is built.
    dataset = dataset_for(plan, builder)
    # That of readers that name none; of others the plan names what they read.
    spec = plan.spec if any(s.spec is None and s.data is None for s in plan.sources) else None
    planned = plan_order(dataset, spec, plan.settings)
    check_same_dataset(plan.dataset, planned.order.dataset, "plan", allow_version=allow_version)
    if checks_seed:
        check_global_seed(plan.settings, of_plan=True)
    settings = plan.settings
    made = real_dataset(builder, spec, settings, **how) if real is None else real()
    own = OwnElements(dataset=made, elements=planned.order)
    # From examples to elements of the pipeline, each a batch or an example.
    steps = element_after(planned.order, plan.consumed)
    try:
        return own.made(start=steps)
    # An element cannot always be made again of single examples. The pipeline is then read from its
    # start.
    except NotRebuildable as why:
        if real is not None:
            raise UsageError(f"{why}: the epochs of these stages are not parted") from why
        return read_again(own, steps, why, pass_index=settings.pass_index, loop=settings.loop)


def real_dataset(builder: Any, spec: str | None, settings: ReadSettings, **how: Any) -> Any:
    """Return the real dataset of settings, and leave the global seed as it was."""
    with global_seed_of(settings):
        if settings.global_seed is None:  # what is in force was found to change nothing
            # `set_seed(None)`, so that a seed which happens to be in force does not go into the
            # graph.
            tensorflow().random.set_seed(None)
        # Pass 0: the passes before are part of the order that is predicted, not of this object.
        return pipeline(builder, spec, replace(settings, pass_index=0), **how)


# The rest of a user's own `tf.data.Dataset`, after so many examples.


@checked
def resume_like(
    dataset: Inspected,
    *,
    consumed: int | None = None,
    steps: int | None = None,
    pass_index: int = 0,
    loop: Loop = "python",
) -> Any:
    """Return the rest of a pipeline of your own: what it yields next, through its own maps.

    The elements are those that iterating `dataset` uninterrupted would have yielded after
    `consumed` examples, batches as they were. The pipeline is inspected, its order predicted, and
    of its graph only maps and batches are kept: they are given the examples that are left. tf.data
    reads these from their files as TFDS does, and a table keeps what comes before its turn, as a
    shuffle buffer would. So no example is decoded that was yielded before. Behind a `cache`,
    records are kept in place of what was made of them, and decoded again in each epoch. What is
    returned may be iterated again, from its start. No seed that is in force now matters, nor
    whether `dataset` was iterated. If the files hold fewer examples than the metadata says, tf.data
    fails while the rest is iterated.

    Where that cannot be (batches of batches that were reordered, maps of such batches that are
    taken apart, `enumerate`), the dataset is read again from its start, with a warning that says
    how many examples that costs; it must then be new, and the rest is iterated once.

    Maps that draw random numbers yield the same examples with other numbers: their state cannot
    be continued, which a warning says; the same goes for maps that count in variables, or call
    Python.

    Where a function returns no dataset but what iterates one (a generator, `tfds.as_numpy`), it is
    called several times. Its Python code runs on elements of zeros up to where it was interrupted,
    and then on the rest. Code that takes elements by what they hold, that keeps earlier ones, or
    that takes more than 3 s to get there, is refused: call `resume_like` in it.

    Args:
        dataset: a `tf.data.Dataset`, made as the interrupted one was; or a function that makes it,
            or that returns what iterates it.
        consumed: examples yielded in this pass, counted over all of its epochs.
        steps: elements yielded, in place of `consumed`: batches, where it ends with batches.
        pass_index: which iteration of the dataset object was interrupted, from 0.
        loop: who iterated it; with "keras-fit" the pass is the epoch of `fit`.

    Raises:
        UnpredictableOrderError: a stage makes the order nondeterministic; it is named.
        UsageError: `consumed` is past the end or in the middle of a batch.
        MissingDependencyError: TensorFlow is not installed.

        rest = shardctl.tfds.resume_like(make_dataset(), consumed=64_000)
    """
    if (consumed is None) == (steps is None):
        raise UsageError("give consumed=N examples, or steps=N batches")
    if pass_index < 0:
        raise UsageError(f"pass_index={pass_index}: passes count from 0")
    tensorflow()
    lines, found = Lines(), dataset
    if not is_dataset(dataset):
        iterators, reset = Iterators(), random_states()
        with lines.watched(), iterators.watched():
            found = dataset()
        if not is_dataset(found):
            code = IteratingCode(
                make=dataset,
                lines=lines,
                left=(consumed if steps is None else steps) or 0,
                counts_steps=steps is not None,
                pass_index=pass_index,
                loop=loop,
            )
            return code.resumed(found, iterators, reset)
    if clones_of(found) is not None:
        raise UsageError(
            "the dataset is distributed already: distribute the rest of the dataset that it was "
            "made of, experimental_distribute_dataset(resume_like(dataset, ..))"
        )
    made = Returned(dataset=found).after([] if found is dataset else iterators.made)
    inspection = inspected(made, lines=lines, loop=loop)
    inspection.check_predictable()
    own = OwnElements.of(found, inspection, pass_index)
    if steps is None:
        steps = element_after(own.elements, consumed or 0)
    # `steps_up_to(n)` is n, or less where the order ends before.
    if steps < 0 or own.elements.steps_up_to(steps) < steps:
        raise UsageError(f"steps={steps}: the pipeline has {own.elements.num_steps} steps")
    try:
        rest = own.made(start=steps)
    except NotRebuildable as why:
        return read_again(own, steps, why, pass_index=pass_index, loop=loop)
    if own.state_warning is not None:
        warnings.warn(own.state_warning, stacklevel=3)  # past @checked
    return rest


# What each stage and source is in tf.data: the calls by which a script makes it.


@dataclass(frozen=True, kw_only=True)
class StageCalls:
    """Pipelines as real datasets. `reader` makes what TFDS's reader yields, for each `Read`.

    pad: what padding is in a dataset of numbers; elsewhere it is zeros and empty texts.

    A map changes nothing, but is one that TensorFlow does not remove. A shared pipeline is one
    dataset object wherever its label stands.
    """

    reader: Callable[[Read], Any]
    pad: int = 0
    _shared: dict[str, Any] = field(init=False, default_factory=dict)

    def dataset(self, pipeline: call.Pipeline, like: Any = None) -> Any:
        """Return the `tf.data.Dataset` of a pipeline, made in the order of a script.

        like: the `element_spec` of what padding is concatenated to.

        Raises:
            UsageError: a stage is code that stages do not tell, as a filter is.
        """
        # Source first, then stage by stage: the order in which a script makes them. Shuffles
        # without a seed draw theirs in this order.
        made = self._padding(pipeline.source, like)
        for stage in pipeline.stages:
            made = self._stage(stage, made)
        return made

    def _padding(self, source: Source, like: Any) -> Any:
        if not isinstance(source, call.Padding) or like is None:
            return self._source(source)
        tf = tensorflow()
        # Components of unknown length are empty, as a script would have them.
        zeros = tf.nest.map_structure(
            lambda one: tf.zeros([size or 0 for size in one.shape], one.dtype), like
        )
        if self.pad:  # of codes, which are numbers
            zeros += self.pad
        return tf.data.Dataset.from_tensors(zeros).repeat(source.count)

    def _source(self, source: Source) -> Any:
        sets = tensorflow().data.Dataset
        match source:
            case Read():
                return self.reader(source)
            # One object for all its users: they share its shuffle generator and its cache.
            case call.Shared():
                if source.label not in self._shared:
                    self._shared[source.label] = self.dataset(source.pipeline)
                return self._shared[source.label]
            case call.Range():
                return sets.range(source.stop)
            case call.Values():
                # int64, as tf.data's own choices have to be.
                return sets.from_tensor_slices(np.array(source.values, np.int64))
            case call.Zip():
                return sets.zip(tuple(map(self.dataset, source.inputs)))
            case call.SampleFromDatasets():
                return _sampled(source, list(map(self.dataset, source.inputs)))
            case call.ChooseFromDatasets():
                inputs, choices = list(map(self.dataset, source.inputs)), source.choices
                return sets.choose_from_datasets(
                    inputs, self.dataset(choices), stop_on_empty_dataset=source.stop_on_empty
                )
        raise _unknown(source.called)

    def _stage(self, stage: Stage, made: Any) -> Any:
        tf = tensorflow()
        match stage:
            # A pair cannot be stated by any seed of `Dataset.shuffle`, so the op is called itself.
            case call.Shuffle(seed=tuple(pair)):
                return _shuffled_by_pair(made, stage.buffer, pair, stage.reshuffle)
            case call.AssertCardinality():
                return made.apply(tf.data.experimental.assert_cardinality(stage.count))
            case call.Concatenate():
                return made.concatenate(self.dataset(stage.other, made.element_spec))
            case call.WithOptions():
                return made.with_options(_options(stage))
        found = stage.in_tf()
        if found is None:
            raise _unknown(stage.called)
        # A map's function stands first, then the other arguments.
        function = [_passed_on(made.element_spec)] if found.takes_function else []
        named = {name: _real(value) for name, value in found.by_name.items()}
        return getattr(made, found.method)(*function, *map(_real, found.by_place), **named)


def _real(value: Any) -> Any:
    """Return an argument, a constant of TensorFlow as what it is."""
    return attrgetter(value)(tensorflow()) if isinstance(value, OfTensorflow) else value


def _options(stage: call.WithOptions) -> Any:
    options = tensorflow().data.Options()
    for name, attribute in stage.attributes.items():
        # "a.b" is attribute b of part a of the options.
        within, _, last = attribute.rpartition(".")
        if (value := getattr(stage, name)) is not None:
            setattr(getattr(options, within) if within else options, last, value)
    return options


def _unknown(name: str) -> UsageError:
    return UsageError(
        f"--stages: what {name} does is code of the script, so that no real pipeline can be "
        "made of it here; give the dataset object itself, to shardctl.tfds.verify or "
        "resume_like"
    )


def _passed_on(spec: Any) -> Callable[..., Any]:
    """Return a function of an element that gives it back, by an op that stays in the graph.

    TensorFlow removes maps that return their arguments (noop_elimination.cc).
    """
    tf = tensorflow()

    # `stop_gradient` is an op that changes no value, so the map is not removed.
    def again(part: Any) -> Any:
        return tf.nest.map_structure(tf.stop_gradient, part, expand_composites=True)

    # tf.data passes the components of a tuple as separate arguments.
    if type(spec) is tuple:
        return without_autograph(lambda *parts: again(parts))
    return without_autograph(again)


def _shuffled_by_pair(made: Any, buffer: int, pair: KernelPair, reshuffle: bool | None) -> Any:
    """Return `made.shuffle(buffer)` with the two seeds of the kernel, whatever is in force."""
    seeds = tensorflow().constant(pair, tensorflow().int64)
    dataset = kernel_shuffle(made, buffer, seeds, reshuffles=reshuffle is not False)
    # Its functions go with `made`, and a graph made of this dataset later has but their names.
    dataset._shuffled = made
    return dataset


def _sampled(source: call.SampleFromDatasets, inputs: list[Any]) -> Any:
    """Return a mixture, by the call of a script."""
    if isinstance(source.seed, tuple):
        raise UsageError(
            f"--stages: no script draws the inputs of a mixture by the seeds {source.seed} beside "
            "other seeds; give the dataset object itself, to shardctl.tfds.verify or resume_like"
        )
    named = named_in_tf(source)
    wide = named.pop("weights_dtype", None)
    if source.weights is not None:  # an array has 64 bits each
        named["weights"] = np.array(source.weights) if wide else list(source.weights)
    return tensorflow().data.Dataset.sample_from_datasets(inputs, **named)


# What each host mode is in TFDS and tf.data: the calls by which a host gets its examples.


def _host_by(settings: ReadSettings, mode: HostBy) -> Host | None:
    return settings.host if settings.host_by == mode else None


def split_of_host(spec: str, settings: ReadSettings) -> Any:
    """Return what `as_dataset` is asked for on the settings' host, in place of a spec."""
    host = _host_by(settings, "even")
    if host is None:
        return spec
    # As a user would call it: TFDS's own splits, of which this host takes its one.
    return tensorflow_datasets().even_splits(spec, host.count, drop_remainder=False)[host.index]


def input_context_of_host(settings: ReadSettings) -> Any:
    """Return the `ReadConfig.input_context` of the settings' host, None without one."""
    host = _host_by(settings, "files")
    if host is None:
        return None
    context = tensorflow().distribute.InputContext
    return context(num_input_pipelines=host.count, input_pipeline_id=host.index)


def shard_of_host(elements: Any, settings: ReadSettings, mode: HostBy) -> Any:
    """Return what the settings' host keeps of file instructions, or of what its reader yields."""
    host = _host_by(settings, mode)
    return elements if host is None else elements.shard(host.count, host.index)
