"""Shuffle passes: how many iterators of a shuffle a pass over a dataset makes.

A pass is one iteration of a dataset, and may repeat it: num_epochs epochs. A shuffle that
reshuffles takes new seeds for each iterator made of it, so a later pass depends on how many
iterators the earlier ones made, also of those that nobody read. All passes before the one asked
for are taken to be read to their end.
"""

from __future__ import annotations

from typing import Literal

from shardctl.base.tfds_rules import KERAS_UNREAD_ITERATORS
from shardctl.errors import UnpredictableOrderError

Loop = Literal["python", "keras-fit"]


def iterators_per_pass(
    num_epochs: int,
    *,
    fused: bool,
    loop: Loop = "python",
    under_shuffle: bool = False,
    partial_last_batch: bool = False,
) -> int:
    """Return how many iterators of a shuffle a pass makes that is read to its end.

    num_epochs: the epochs in a pass, as in `repeat(num_epochs)`.
    fused: TensorFlow made one op of the shuffle and the `repeat` right above it. It does not where
        anything that stays in the graph is between the two, also `with_options`, or where the
        optimisation shuffle_and_repeat_fusion is off; the interleave is above a file shuffle.
    loop: "keras-fit" is `fit` or `evaluate` on a dataset of known cardinality, without
        steps_per_epoch; each of its epochs is a pass. Everything else counts as "python".
    under_shuffle: another shuffle, above this one, is below the repeat; it asks for an iterator
        of this one only when an epoch starts to be read.
    partial_last_batch: the last batch of a pass is smaller than the others and not dropped.

    >>> iterators_per_pass(3, fused=False), iterators_per_pass(1, fused=True, loop="keras-fit")
    (4, 2)

    Raises:
        UnpredictableOrderError: their number depends on the timing of TensorFlow's threads.
    """
    if under_shuffle:
        return num_epochs
    # A repeat that is not fused makes an iterator more when it is asked for what follows the
    # last epoch (tensorflow/core/kernels/data/repeat_dataset_op.cc); repeat(1) is optimised
    # away.
    extra = int(not fused and num_epochs > 1)
    if loop == "python":
        return num_epochs + extra
    # Keras never asks for what follows the last batch, but makes an iterator there that it
    # drops at the next epoch (keras/src/trainers/epoch_iterator.py). To fill a partial batch
    # the repeat was asked already; else the prefetch that TensorFlow adds asks it before that,
    # meanwhile or not at all.
    if extra and not partial_last_batch:
        raise UnpredictableOrderError(
            f"the shuffle of a later pass of keras-fit over {num_epochs} epochs depends "
            "on timing: repeat with fit(epochs=...), or keep a partial last batch"
        )
    return num_epochs + extra + KERAS_UNREAD_ITERATORS
