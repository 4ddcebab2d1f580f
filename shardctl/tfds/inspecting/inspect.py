"""A real `tf.data.Dataset` read back as stages: where is its order open, and what is it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from shardctl.core.arguments.checked import checked
from shardctl.core.arguments.kinds import Kind
from shardctl.core.iteration.build import build
from shardctl.core.iteration.generator import ScriptSeeds
from shardctl.core.iteration.iteration import UNKNOWN
from shardctl.core.iteration.nodes.source import Source
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import Loop
from shardctl.errors import ShardctlError, UsageError
from shardctl.planning.inspect import Inspection
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.assemble import assembled
from shardctl.tfds.inspecting.watching import Lines
from shardctl.tfds.recognizing.graph import operation_of
from shardctl.tfds.recognizing.options import options_in_force
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
        dataset = made_by(dataset, lines)
        if not is_dataset(dataset):
            raise UsageError(f"the function returned {type(dataset).__name__}, no tf.data.Dataset")
    return inspected(dataset, lines=lines, loop=loop)


def made_by(function: Callable[[], Any], lines: Lines) -> Any:
    """Return what a function returns, noting the line of each dataset that it makes."""
    with lines.watched():
        return function()


def inspected(dataset: Any, *, lines: Lines, loop: Loop, name: str = "") -> Inspection:
    """Return the answer for a dataset whose making was watched, or was not."""
    clones = _clones(dataset)
    if clones is not None:
        dataset = clones[0]
    with tensorflow().init_scope():  # a function that is being traced uses a dataset from outside
        found = walked(operation_of(dataset), options_in_force(dataset))
        if loop == "python" or int(dataset.cardinality()) != UNKNOWN:
            return assembled(found, line_of=lines.of, loop=loop, name=name)
        # Of a dataset whose length TensorFlow does not know, as of plain record files or without
        # assert_cardinality, Keras takes one iterator an epoch and reads to its end.
        made = assembled(found, line_of=lines.of, name=name)
        if not _passes_differ_in_length(made.settings):
            return made
        # Epochs after the first end where that one did: see `iteration_of_pass`.
        return assembled(found, line_of=lines.of, loop=loop, name=name)


def _passes_differ_in_length(settings: ReadSettings) -> bool:
    """Return whether passes may, as those of a mixture do: stages do not tell their number."""
    if settings.stages is None:
        return False
    seeds = ScriptSeeds(settings.global_seed)
    try:
        node = build(settings.stages, lambda read: Source(range(1)), seeds=seeds)
    except ShardctlError:  # which is said where the order is asked for
        return False
    return node.cardinality == UNKNOWN
