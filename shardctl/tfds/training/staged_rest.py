"""The rest of a pipeline with stages: its real dataset, made of the examples that are left."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import Loop
from shardctl.core.stages.readers import readers_of
from shardctl.core.text import counted
from shardctl.errors import UnpredictableOrderError
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.resume.same_dataset import check_same_dataset
from shardctl.tfds.builder_layout import dataset_of, in_order_of
from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.training.global_seed import check_global_seed, global_seed_of
from shardctl.tfds.training.pipeline import pipeline


def rest_of_plan(
    builder: Any, plan: ResumePlan, *, allow_version: bool, checks_seed: bool = True, **how: Any
) -> Any:
    """Return what is left of a plan whose settings have stages, batches as they were.

    `checks_seed` is that of `dataset_to_resume`; `how` are the arguments of `pipeline` for what an
    example becomes.

    Raises:
        DatasetError: the dataset is another one or has changed.
        UsageError: the plan ends within a batch; a global seed in force as for `resume`.
    """
    dataset = in_order_of(dataset_of(builder), [split.name for split in plan.dataset.splits])
    spec = _given_spec(plan)
    planned = plan_order(dataset, spec, plan.settings)
    check_same_dataset(plan.dataset, planned.order.dataset, "plan", allow_version=allow_version)
    if checks_seed:
        check_global_seed(plan.settings, lambda: 2, of_plan=True)
    return rest_of_stages(builder, spec, plan.settings, planned, plan.consumed, **how)


def _given_spec(plan: ResumePlan) -> str | None:
    """Return the spec of readers that name none; of others the plan names what they read."""
    assert plan.settings.stages is not None
    readers = readers_of(plan.settings.stages)
    return plan.spec if any(r.spec is None and r.data is None for r in readers) else None


def rest_of_stages(
    builder: Any,
    spec: str | None,
    settings: ReadSettings,
    planned: PlannedOrder,
    consumed: int,
    **how: Any,
) -> Any:
    """Return what a pipeline with stages hands out after so many examples."""
    own = OwnElements.of_order(real_dataset(builder, spec, settings, **how), planned.order)
    steps = own.elements.element_after(consumed)
    try:
        return own.made(start=steps)
    except NotRebuildable as why:
        return read_again(own, steps, why, pass_index=settings.pass_index, loop=settings.loop)


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
