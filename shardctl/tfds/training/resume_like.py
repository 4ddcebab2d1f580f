"""The rest of a user's own `tf.data.Dataset`, after so many examples."""

from __future__ import annotations

import warnings
from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.core.shuffle.passes import Loop
from shardctl.errors import UsageError
from shardctl.tfds.graphs.dataset_graph import NotRebuildable
from shardctl.tfds.graphs.own_elements import OwnElements
from shardctl.tfds.inspecting.inspect import Inspected, inspect, is_dataset
from shardctl.tfds.training.staged_rest import read_again


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
