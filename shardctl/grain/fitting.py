"""Keras `fit` over a loader or a dataset of Grain, each epoch in its own order."""

from __future__ import annotations

from typing import Any

from shardctl.core.arguments.checked import checked
from shardctl.errors import UsageError
from shardctl.grain.libraries import keras


@checked
def fit_epochs(dataset: object) -> Any:
    """Return the callback with which each epoch of `fit` is in the order that tf.data's `fit` has.

    Keras makes an iterator an epoch, and would see one order again and again. With it epoch e of
    `fit` trains on the order that `shardctl simulate --loop keras-fit --pass e` shows. `dataset` is
    what `data_loader`, `map_dataset` or `Sampler` returned, before `map` and `batch`:

        examples = shardctl.grain.map_dataset(source, builder, "train", settings)
        model.fit(examples.map(prepare).batch(32), epochs=9, callbacks=[fit_epochs(examples)])

    Raises:
        UsageError: it is none of these; as `fit` begins, `steps_per_epoch`, with which fit reads
            one iterator on and on.
        MissingDependencyError: Keras is not installed.
    """
    target: Any = getattr(dataset, "_sampler", dataset)
    if not hasattr(target, "begin_epoch_of_fit"):
        raise UsageError(
            "dataset: what shardctl.grain.data_loader, map_dataset or Sampler returned is needed, "
            "before Grain's own map, batch and to_iter_dataset"
        )
    callbacks = keras().callbacks

    class FitEpochs(callbacks.Callback):  # type: ignore[misc, name-defined]
        """Goes to the order of each epoch before Keras makes its iterator."""

        def on_train_begin(self, logs: Any = None) -> None:
            if self.params.get("steps") is not None:
                raise UsageError(
                    "steps_per_epoch: fit then reads one iterator on and on, which is the one "
                    "order of ReadSettings(epochs=N); leave fit_epochs out, or steps_per_epoch"
                )

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            target.begin_epoch_of_fit(epoch)

    return FitEpochs()
