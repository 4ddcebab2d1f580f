"""Read settings as the real thing: the calls that they stand for, and the rest of their stages."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shardctl.base.arguments import checked
from shardctl.base.text import counted, quoted
from shardctl.dataset.dataset import Dataset, as_dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.file_formats import refuse_unreadable
from shardctl.order.plan_order import plan_order
from shardctl.order.sources import spec_of_reader
from shardctl.saved.resume_plan import ResumePlan
from shardctl.settings.read_settings import ReadSettings, refuse_loader
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.stages.stages import Read
from shardctl.tfdata.shuffle_passes import Loop
from shardctl.tfds.builder_layout import Builder, builder_of, dataset_of
from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.imports import tensorflow, tensorflow_datasets
from shardctl.tfds.inspecting.inspect import Inspected, inspect, is_dataset
from shardctl.tfds.stage_calls import StageCalls, input_context_of_host, split_of_host
from shardctl.tfds.training.global_seed import check_global_seed, global_seed_of
from shardctl.tfds.training.read_config import dataset_for
from shardctl.verbs.resume.apply_plan import check_same_dataset

Transform = Callable[[Any], Any]


@checked
def pipeline(
    builder: Builder,
    spec: str | None = None,
    settings: ReadSettings | None = None,
    *,
    transform: Transform | None = None,
    decoders: Any = None,
    add_tfds_id: bool = False,
) -> Any:
    """Return the `tf.data.Dataset` that settings describe, of TFDS's own reader and tf.data.

    The calls, in their order: `tf.random.set_seed(settings.global_seed)` where there is one,
    `builder.as_dataset` with a `tfds.ReadConfig`, `map(transform)`, then `shard`, `shuffle`,
    `repeat` and `batch`, each where the settings have it; or `settings.stages`, call by call. So
    iterating gives the order that `shardctl simulate` predicts for pass 0, and iterating again that
    of pass 1. A map among the stages leaves elements as they are; a reader of stages that names a
    dataset of its own finds it as `shardctl` does, in its folder.

    `transform` is a function of one example; it makes examples fit into a batch, or leaves of them
    `example["tfds_id"]` (a string scalar) with `add_tfds_id`. `decoders` is TFDS's own argument.

    Where the files repeat without end, the dataset is cut after `settings.epochs` of them. A cycle
    of "auto" is read as the number that it comes to on `settings.cpus`.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open.
        UsageError: a global seed is in force in TensorFlow that the settings do not have and that
            changes the order (see `global_seed.check_global_seed`); a bad spec.
        MissingDependencyError: TensorFlow or TFDS is not installed.
    """
    settings = ReadSettings() if settings is None else settings
    refuse_loader(settings, "shardctl.tfds.pipeline", "simulate as code has its own pipeline")
    tf = tensorflow()
    dataset = dataset_of(builder)
    refuse_unreadable(dataset)
    planned = plan_order(dataset, spec, settings)
    if settings.global_seed is None:
        check_global_seed(settings, lambda: len(planned.order.reads))
    else:
        tf.random.set_seed(settings.global_seed)

    def read_of(part: Read) -> Any:
        own, of_own = (builder, dataset) if part.data is None else _referred(part.data)
        own_settings = settings_of_read(settings, part)
        config = tfds_config(own_settings, of_own, add_tfds_id=add_tfds_id)
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

    return StageCalls(reader=read_of).dataset(
        stages_of(settings, lambda: planned.order.num_examples)
    )


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
    ranks: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        ranks.setdefault(name.rpartition("/")[2], []).append(index)

    def rank(file: Any) -> int:
        found = ranks.get(file.basename(), [])
        if len(found) > 1:
            path = str(file.filename)
            found = [i for i in found if path.endswith(f"/{names[i].strip('/')}")]
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
    dataset = dataset_for(plan, builder)
    spec = _given_spec(plan)
    planned = plan_order(dataset, spec, plan.settings)
    check_same_dataset(plan.dataset, planned.order.dataset, "plan", allow_version=allow_version)
    if checks_seed:
        check_global_seed(plan.settings, lambda: 2, of_plan=True)
    settings = plan.settings
    made = real_dataset(builder, spec, settings, **how) if real is None else real()
    own = OwnElements.of_order(made, planned.order)
    steps = own.elements.element_after(plan.consumed)
    try:
        return own.made(start=steps)
    except NotRebuildable as why:
        if real is not None:
            raise UsageError(f"{why}: the epochs of these stages are not parted") from why
        return read_again(own, steps, why, pass_index=settings.pass_index, loop=settings.loop)


def _given_spec(plan: ResumePlan) -> str | None:
    """Return the spec of readers that name none; of others the plan names what they read."""
    return plan.spec if any(s.spec is None and s.data is None for s in plan.sources) else None


def real_dataset(builder: Any, spec: str | None, settings: ReadSettings, **how: Any) -> Any:
    """Return the real dataset of settings, and leave the global seed as it was."""
    with global_seed_of(settings):
        if settings.global_seed is None:  # what is in force was found to change nothing
            tensorflow().random.set_seed(None)
        return pipeline(builder, spec, replace(settings, pass_index=0), **how)


def read_again(
    own: OwnElements, steps: int, why: NotRebuildable, *, pass_index: int, loop: Loop
) -> Any:
    """Return the rest of a pipeline that is read again from its start, with a warning of the cost.

    Raises:
        UnpredictableOrderError: what Keras read ahead in earlier epochs cannot be repeated.
    """
    if loop == "keras-fit" and pass_index:
        raise UnpredictableOrderError(
            f"{why}, so the pipeline has to be read again from its start, and what Keras read "
            "ahead in earlier epochs cannot be repeated"
        )
    elements = own.elements
    num_examples = elements.num_examples_before(steps) + pass_index * (elements.num_examples or 0)
    warnings.warn(
        f"{why}: the pipeline is read again from its start, {counted(num_examples, 'example')} "
        "that were handed out; iterate the rest once",
        stacklevel=4,
    )
    for _ in range(pass_index):
        for _ in own.dataset:
            pass
    rest = own.dataset.skip(steps)
    total = own.elements.num_elements
    if total is not None:
        rest = rest.apply(tensorflow().data.experimental.assert_cardinality(total - steps))
    return rest


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
    """Return the rest of a pipeline of your own: what it hands out next, through its own maps.

    The elements are those that iterating `dataset` uninterrupted would have handed out after
    `consumed` examples, batches as they were. The pipeline is inspected, its order predicted, and
    of its graph only maps and batches are kept: they are given the examples that are left, read by
    their places in the files. So no shuffle is filled again and nothing is decoded that was handed
    out. What is returned may be iterated again, from where it began. No seed that is in force now
    matters, nor whether `dataset` was iterated.

    Where that cannot be (batches of batches that were reordered, maps of such batches that are
    taken apart, `enumerate`), the dataset is read again from its start, with a warning that says
    how many examples that costs; it must then be new, and the rest is iterated once.

    Maps that draw random numbers hand out the same examples with other numbers: their state cannot
    be continued, which a warning says; the same goes for maps that count in variables, or call
    Python.

    Args:
        dataset: a `tf.data.Dataset`, made as the interrupted one was; or a function that makes it.
        consumed: examples handed out in this pass, counted over all of its epochs.
        steps: elements handed out, in place of `consumed`: batches, where it ends with batches.
        pass_index: which iteration of the dataset object was interrupted, from 0.
        loop: who iterated it; with "keras-fit" the pass is the epoch of `fit`.

    Raises:
        UnpredictableOrderError: a stage leaves the order open; it is named.
        UsageError: `consumed` is past the end or in the middle of a batch.
        DatasetError: the files hold fewer examples than the metadata says.
        MissingDependencyError: TensorFlow is not installed.

        rest = shardctl.tfds.resume_like(make_dataset(), consumed=64_000)
    """
    if (consumed is None) == (steps is None):
        raise UsageError("give consumed=N examples, or steps=N batches")
    if pass_index < 0:
        raise UsageError(f"pass_index={pass_index}: passes count from 0")
    if not is_dataset(dataset):
        dataset = dataset()
    inspection = inspect(dataset, loop=loop)
    inspection.check_predictable()
    own = OwnElements.of(dataset, inspection, pass_index)
    if steps is None:
        steps = own.elements.element_after(consumed or 0)
    own.elements.check_steps(steps)
    try:
        rest = own.made(start=steps)
    except NotRebuildable as why:
        return read_again(own, steps, why, pass_index=pass_index, loop=loop)
    for warning in own.state_warnings():
        warnings.warn(warning, stacklevel=3)  # past @checked
    return rest
