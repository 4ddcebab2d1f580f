"""The rest of a pipeline with stages: its real dataset, made of the examples that are left."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import Loop
from shardctl.core.text import counted
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.planning.order import plan_order
from shardctl.planning.resume.apply_plan import check_same_dataset
from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.inspect import Inspected, inspect, is_dataset
from shardctl.tfds.training.fitted_plan import dataset_for
from shardctl.tfds.training.global_seed import check_global_seed, global_seed_of
from shardctl.tfds.training.pipeline import pipeline

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
