"""Shuffle passes: which iterator of a shuffle each epoch of each pass over a dataset reads.

A pass is one iteration of a dataset, and may repeat it: num_epochs epochs. A shuffle that
reshuffles takes new seeds for each iterator made of it, so a later pass depends on how many
iterators the earlier ones made, also of those that nobody read. All passes before the one asked
for are taken to be read to their end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from shardctl.core.tfds_rules import KERAS_UNREAD_ITERATORS
from shardctl.errors import UnpredictableOrderError, UsageError

Loop = Literal["python", "keras-fit"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShufflePasses:
    """How the iterators of one shuffle are used up.

    num_epochs: the epochs in a pass, as in `repeat(num_epochs)`; None repeats forever.
    fused: TensorFlow made one op of the shuffle and the `repeat` right above it.
    loop: "keras-fit" is `fit` or `evaluate` on a dataset of known cardinality, without
        steps_per_epoch; each of its epochs is a pass. Everything else counts as "python".
    under_shuffle: another shuffle, above this one, is below the repeat; it asks for an iterator
        of this one only when an epoch starts to be read.
    reshuffle: `reshuffle_each_iteration`; where it is False all iterators are alike.
    partial_last_batch: the last batch of a pass is smaller than the others and not dropped.

    >>> passes = ShufflePasses(num_epochs=3, fused=False)
    >>> [passes.iterator_index(1, epoch) for epoch in range(3)]
    [4, 5, 6]

    Raises:
        UsageError: `num_epochs` is below 1, or `loop` is unknown.
    """

    num_epochs: int | None
    fused: bool
    loop: Loop = "python"
    under_shuffle: bool = False
    reshuffle: bool | None = None
    partial_last_batch: bool = False

    def __post_init__(self) -> None:
        if self.num_epochs is not None and self.num_epochs < 1:
            raise UsageError(f"{self.num_epochs} epochs in a pass: at least 1 is needed")
        if self.loop not in get_args(Loop):
            raise UsageError(f"no loop {self.loop!r}; there are: {', '.join(get_args(Loop))}")

    def iterators_per_pass(self) -> int:
        """Return how many iterators of the shuffle a pass makes that is read to its end.

        Raises:
            UnpredictableOrderError: their number depends on the timing of TensorFlow's threads.
            UsageError: the pass repeats forever.
        """
        if self.num_epochs is None:
            raise UsageError("a pass that repeats forever has no end, so no pass follows it")
        if self.under_shuffle:
            return self.num_epochs
        # A repeat that is not fused makes an iterator more when it is asked for what follows the
        # last epoch (tensorflow/core/kernels/data/repeat_dataset_op.cc); repeat(1) is optimised
        # away.
        extra = int(not self.fused and self.num_epochs > 1)
        if self.loop == "python":
            return self.num_epochs + extra
        # Keras never asks for what follows the last batch, but makes an iterator there that it
        # drops at the next epoch (keras/src/trainers/epoch_iterator.py). To fill a partial batch
        # the repeat was asked already; else the prefetch that TensorFlow adds asks it before that,
        # meanwhile or not at all.
        if extra and not self.partial_last_batch:
            raise UnpredictableOrderError(
                f"the shuffle of a later pass of keras-fit over {self.num_epochs} epochs depends "
                "on timing: repeat with fit(epochs=...), or keep a partial last batch"
            )
        return self.num_epochs + extra + KERAS_UNREAD_ITERATORS

    def iterator_index(self, pass_index: int, epoch_index: int) -> int:
        """Return the index of the iterator that an epoch of a pass reads, 0 if all are alike.

        Raises:
            UnpredictableOrderError: see `iterators_per_pass`.
            UsageError: an index is below 0, the pass has fewer epochs, or follows an endless one.
        """
        if pass_index < 0 or epoch_index < 0:
            raise UsageError(f"epoch {epoch_index} of pass {pass_index}: both count from 0")
        if self.num_epochs is not None and epoch_index >= self.num_epochs:
            raise UsageError(f"epoch {epoch_index} of a pass of {self.num_epochs}, counted from 0")
        if self.reshuffle is False:
            return 0
        earlier = pass_index * self.iterators_per_pass() if pass_index else 0
        return earlier + epoch_index


def user_shuffle_passes(
    *,
    num_epochs: int | None,
    loop: Loop = "python",
    fused: bool = True,
    reshuffle: bool | None = None,
    partial_last_batch: bool = False,
) -> ShufflePasses:
    """Return the passes of `ds.shuffle(buffer).repeat(num_epochs)`.

    `fused` is False where anything that stays in the graph is between the two, also
    `with_options`, or where the optimisation shuffle_and_repeat_fusion is off.

    >>> user_shuffle_passes(num_epochs=1, loop="keras-fit").iterator_index(2, 0)
    4
    """
    return ShufflePasses(
        num_epochs=num_epochs,
        fused=fused,
        loop=loop,
        reshuffle=reshuffle,
        partial_last_batch=partial_last_batch,
    )


def file_shuffle_passes(
    *,
    num_epochs: int | None,
    loop: Loop = "python",
    under_user_shuffle: bool = False,
    repeat_filenames: bool = False,
    reshuffle: bool | None = None,
    partial_last_batch: bool = False,
) -> ShufflePasses:
    """Return the passes of the file shuffle in a TFDS dataset that is repeated `num_epochs` times.

    The interleave is between the two, so they never fuse. With `repeat_filenames` TFDS repeats
    the shuffled files themselves, forever, and an epoch is one of the list of files.

    >>> file_shuffle_passes(num_epochs=3).iterator_index(1, 0)
    4
    >>> file_shuffle_passes(num_epochs=3, under_user_shuffle=True).iterator_index(1, 0)
    3
    """
    return ShufflePasses(
        num_epochs=None if repeat_filenames else num_epochs,
        fused=repeat_filenames,
        loop=loop,
        under_shuffle=under_user_shuffle and not repeat_filenames,
        reshuffle=reshuffle,
        partial_last_batch=partial_last_batch,
    )
