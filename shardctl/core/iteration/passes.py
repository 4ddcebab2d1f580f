"""Passes over a dataset: which iterator of it each one reads, and what the earlier ones did."""

from __future__ import annotations

from shardctl.core.iteration.iteration import EVERYTHING, Iteration, Node
from shardctl.core.shuffle.passes import Loop
from shardctl.errors import UsageError


def iteration_of_pass(node: Node, pass_index: int = 0, *, loop: Loop = "python") -> Iteration:
    """Return the iterator of a pass after the earlier ones were read to their end.

    node: a dataset object that nobody has iterated yet.
    loop: "keras-fit" is `fit` or `evaluate` without steps_per_epoch, each epoch a pass. Where the
        cardinality is known Keras reads so many elements, never asks for the end, and makes another
        iterator that it drops (keras/src/trainers/epoch_iterator.py).

    >>> from shardctl.core.iteration.nodes.source import Source
    >>> iteration_of_pass(Source(range(3)), 5).pull(2)
    2

    Raises:
        UsageError: `pass_index` is below 0, or the passes before have no end.
    """
    if pass_index < 0:
        raise UsageError(f"pass {pass_index}: passes count from 0")
    if pass_index and node.is_infinite:
        raise UsageError("a pass that repeats forever has no end, so no pass follows it")
    if node.is_fixed:
        return node.iterate()
    for _ in range(pass_index):
        play(node, loop=loop)
    return node.iterate()


def play(node: Node, *, loop: Loop = "python") -> None:
    """Read a whole pass, counts only, as the loop does.

    Keras has no steps to count where a dataset says 0, INFINITE or UNKNOWN, and reads to the end.
    """
    iteration = node.iterate()
    if loop == "python" or node.cardinality <= 0:
        iteration.pull(EVERYTHING)
        return
    if iteration.pull(node.cardinality) < node.cardinality:
        return  # "Your input ran out of data": the loop stops there
    # The prefetch that TensorFlow adds at the end of a pipeline may have asked for what follows.
    iteration.abandon()
    node.iterate().abandon()
