"""A real `tf.data.Dataset` read back as stages: where is its order open, and what is it?"""

from __future__ import annotations

from typing import Annotated, Any

from shardctl.core.arguments.checked import checked
from shardctl.core.arguments.kinds import Kind
from shardctl.core.iteration.iteration import UNKNOWN
from shardctl.core.shuffle.passes import Loop
from shardctl.errors import UsageError
from shardctl.planning.inspect import Inspection
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.assemble import assembled
from shardctl.tfds.inspecting.watching import Lines
from shardctl.tfds.recognizing.graph import operation_of, options_in_force
from shardctl.tfds.recognizing.walk import walked


def _is_inspected(value: Any) -> Any:
    # By what is used of it, since TensorFlow is not imported before it is needed.
    if not (is_dataset(value) or callable(value)):
        raise UsageError("a tf.data.Dataset is needed, or a function that returns one")
    return value


def is_dataset(value: Any) -> bool:
    """Return whether a value is a `tf.data.Dataset`, or one that `tf.distribute` distributes."""
    return hasattr(value, "_variant_tensor") or _clones(value) is not None


def _clones(value: Any) -> Any:
    """Return the datasets of the workers of a distributed dataset, None of any other value."""
    if hasattr(value, "_variant_tensor"):
        return None
    for name in ("_cloned_datasets", "_datasets"):
        found = getattr(value, name, None)
        if isinstance(found, list | tuple) and found:
            return found
    return None


Inspected = Annotated[
    Any,
    Kind(
        take=_is_inspected,
        needed="a tf.data.Dataset, or a function that returns one",
        several="datasets",
    ),
]


@checked
def inspect(dataset: Inspected, *, loop: Loop = "python") -> Inspection:
    """Return what a real pipeline is, stage by stage, and where its order is open.

    The dataset is read back from the graph that TensorFlow has of it, so that seeds, shards,
    interleaves and options are those in force, whatever code set them.

    Args:
        dataset: a `tf.data.Dataset`; one of `strategy.experimental_distribute_dataset`, of which
            this worker's part is inspected; or a function without arguments that makes one: then
            each stage has the line of the script that made it.
        loop: who iterates it: "keras-fit" takes two iterators an epoch.

    Returns:
        An Inspection; `ids()` are what iterating the dataset hands out.

    Raises:
        UsageError: no dataset, or one that TensorFlow does not write as a graph.
        MissingDependencyError: TensorFlow is not installed.

    >>> import shardctl
    >>> found = shardctl.inspect(make_dataset)  # doctest: +SKIP
    >>> found.predictable, found.ids(pass_index=1)[:4].tolist()  # doctest: +SKIP
    (True, [17, 4, 20, 3])
    """
    tensorflow()
    lines = Lines()
    if not is_dataset(dataset):
        with lines.watched():  # which notes the line of each dataset that it makes
            dataset = dataset()
        if not is_dataset(dataset):
            raise UsageError(f"the function returned {type(dataset).__name__}, no tf.data.Dataset")
    return inspected(dataset, lines=lines, loop=loop)


def inspected(dataset: Any, *, lines: Lines, loop: Loop, name: str = "") -> Inspection:
    """Return the answer for a dataset whose making was watched, or was not."""
    clones = _clones(dataset)
    if clones is not None:
        dataset = clones[0]
    with tensorflow().init_scope():  # a function that is being traced uses a dataset from outside
        root = operation_of(dataset)
        if (
            loop == "keras-fit"
            and int(dataset.cardinality()) == UNKNOWN
            and not any(each.op == "DirectedInterleaveDataset" for each in root.all())
        ):
            # Of a dataset whose length TensorFlow does not know, as of plain record files or
            # without assert_cardinality, Keras takes one iterator an epoch and reads to its end.
            # The length of a mixture is another one in each pass, and Keras cuts later ones by the
            # first.
            loop = "python"
        found = walked(root, options_in_force(dataset))
        return assembled(found, line_of=lines.of, loop=loop, name=name)
