"""A callback with which Keras `fit` goes on with the very batch at which it was stopped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Self

from shardctl.core.arguments.checked import checked
from shardctl.errors import UsageError
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.keras.keras_epochs import (
    FitEpochs,
    FitPlace,
    PlaceInWeights,
    drop_torn_metadata,
    place_and_position,
    save_weights_whole,
)
from shardctl.tfds.position.deferred import position_of
from shardctl.tfds.position.derived import leaves_order_open
from shardctl.tfds.position.position import Position


class _EndOfEpoch:
    """What `model.stop_training` is from the last batch of an epoch to the end of its loop."""


_END_OF_EPOCH = _EndOfEpoch()


class _FitCallback:
    """What ResumeFit does when Keras calls it."""

    model: Any  # of Keras's Callback, as is the next
    params: dict[str, Any]

    def __init__(self, position: Position) -> None:
        super().__init__()
        self._position = position
        self._in_weights = PlaceInWeights(self._place)
        self._epochs: FitEpochs | None = None
        self._resumed: FitPlace | None = None
        self._has_begun = False  # an epoch of this fit
        self._is_over = False  # the epoch, of which no batch is left
        self._is_training = False  # in a step of fit, and not of somebody else
        self._learning_rate: Any = None
        self._iterator: Any = None

    def set_model(self, model: Any) -> None:
        """Let the model load a place with the weights that BackupAndRestore will restore."""
        super().set_model(model)  # type: ignore[misc]
        for backup in backups_among(callbacks_of_fit()):
            drop_torn_metadata(backup.backup_dir)
        self._in_weights.found, self._in_weights.loaded = False, None
        self._in_weights.put_into(model)

    def on_train_begin(self, logs: Any = None) -> None:
        """Go to the place of the weights that were restored."""
        callbacks = callbacks_of_fit()
        check_callbacks(callbacks, self)
        check_model(self.model)
        self._epochs = FitEpochs(self._position, self.params["epochs"], self.params["steps"])
        show_length(callbacks, self._epochs.length)
        save_weights_whole(self.model)
        self._has_begun = self._is_over = self._is_training = False
        self._resumed, self._learning_rate = self._restored(self._epochs), None
        # BackupAndRestore has taken its from a file of its own, which may be older.
        self.model._initial_epoch = None if self._resumed is None else self._resumed.next_epoch
        if self._resumed is not None and not self._resumed.is_over:
            self._learning_rate = learning_rate(self.model)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Go to the start of an epoch, if it is not the one in the midst of which a run goes on."""
        epochs, resumed = self._of_fit(), self._resumed
        if resumed is not None and resumed.next_epoch != epoch:
            raise UsageError(
                f"the run that is restored goes on with epoch {resumed.next_epoch}, and fit begins "
                f"with epoch {epoch}: give fit the initial_epoch that the run had"
            )
        if not self._has_begun and resumed is None:
            epochs.start(epoch)
        elif resumed is None or resumed.is_over:
            epochs.begin(epoch)
        self._resumed, self._has_begun, self._is_over = None, True, False

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Count what the step that follows is trained on."""
        if self._learning_rate is not None:
            # What begins an epoch has set it before the run was stopped, and now once more.
            self.model.optimizer.learning_rate = self._learning_rate
            self._learning_rate = None
        function = self.model.train_function
        if not isinstance(function, _Counted) or function.by is not self:
            self.model.train_function = _Counted(function, self)
        self._is_training = True

    def train(self, function: Callable[[Any], Any], iterator: Any) -> Any:
        """Train on a batch, and count it as soon as the weights have changed."""
        is_training, self._is_training = self._is_training, False
        if not is_training:
            return function(iterator)
        epochs = self._of_fit()
        if iterator is not self._iterator:
            check_dataset(iterator, self._position)
            self._iterator = iterator
        if not epochs.num_left:  # stopped behind the last batch, with the end of the epoch to come
            return metrics_of_none(self.model, iterator.element_spec)
        logs = function(iterator)
        epochs.trained()
        return logs

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """End the epoch with its last batch, of which Keras does not know that it is the last."""
        if not self._of_fit().num_left:
            self._is_over = True
            if not self.model.stop_training:
                self.model.stop_training = _END_OF_EPOCH

    def on_test_begin(self, logs: Any = None) -> None:
        """Go on with training after the end of an epoch's batches."""
        self._go_on()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Go on with training after the end of an epoch."""
        self._go_on()
        epochs = self._of_fit()
        if epochs.num_left and not self.model.stop_training:
            raise UsageError(
                f"epoch {epoch} ended after {epochs.steps} of its {epochs.num_steps} batches: "
                "fit was given another dataset than position.dataset()"
            )

    def on_train_end(self, logs: Any = None) -> None:
        """Save what was trained since the last save, and leave the model as it was.

        A backup that is made every so many batches, and is kept, would else have the last ones
        trained again by the next run.
        """
        for backup in backups_among(callbacks_of_fit()):
            by_batches = backup.save_freq not in ("epoch", False)
            if self._has_begun and by_batches and not backup.delete_checkpoint:
                backup._save_model()
        self._in_weights.take_out_of(self.model)
        self.model._initial_epoch = self._iterator = None
        if isinstance(self.model.train_function, _Counted):
            self.model.train_function = self.model.train_function.function

    def _of_fit(self) -> FitEpochs:
        assert self._epochs is not None
        return self._epochs

    def _place(self) -> bytes | None:
        """Return the place of this moment, which weights that are saved now have."""
        if self._epochs is None:
            return None
        return self._epochs.place(is_over=self._is_over).with_position(self._position)

    def _restored(self, epochs: FitEpochs) -> FitPlace | None:
        if self._in_weights.loaded is None:
            if self._in_weights.found:
                raise UsageError(
                    "the weights that BackupAndRestore has restored come without a position: they "
                    "were saved without ResumeFit; begin with another backup_dir"
                )
            return None
        place, state = place_and_position(self._in_weights.loaded)
        epochs.resume(place, state)
        return place

    def _go_on(self) -> None:
        if self.model.stop_training is _END_OF_EPOCH:
            self.model.stop_training = False


class ResumeFit(_FitCallback):
    """A callback beside `keras.callbacks.BackupAndRestore`, which saves and restores the position.

        position = Position(builder, "train", settings)
        model.fit(
            position.dataset(transform=prepare),
            epochs=9,
            callbacks=[keras.callbacks.BackupAndRestore("backup"), ResumeFit(position)],
        )

    Stopped at any moment and started again, the same script trains on the very batches of the run
    that nobody stopped. The position is in the weights file that BackupAndRestore writes, so that
    both are of one moment, and the file is moved to its place when it is whole.

    Epoch e of `fit` trains on the order that `shardctl simulate --loop keras-fit --pass e` shows,
    which is that of `fit` over `pipeline(builder, spec, settings)`; with `steps_per_epoch` on its
    part of the one order of `settings.epochs` epochs. Where a run goes on in mid-epoch, Keras
    counts the batches of that epoch from 0, and its logs speak of the rest alone.

    Raises (as `fit` begins):
        UsageError: BackupAndRestore is missing or stands behind; a callback that begins anew what
            it would have to go on with; several steps an execution, or several workers; another
            dataset than the position's, or one that was shuffled or batched again; a position
            elsewhere than where `fit` begins; an order that is shorter than `fit`.
        DatasetError: what is restored is of another dataset.
        UnpredictableOrderError: TensorFlow leaves the order of later epochs open.
        MissingDependencyError: TensorFlow, and Keras with it, is not installed.
    """

    def __new__(cls, position: Position) -> Self:
        """Return a callback of Keras; the import of shardctl.tfds loads none."""
        kind: Any = cls
        made: Self = object.__new__(_callback_class(kind))
        return made

    @checked
    def __init__(self, position: Position) -> None:
        super().__init__(position)


class _Counted:
    """The train function of a model, which tells a callback of each step."""

    def __init__(self, function: Any, by: _FitCallback) -> None:
        own = isinstance(function, _Counted)  # of a fit that was broken off
        self.function: Callable[[Any], Any] = function.function if own else function
        self.by = by

    def __call__(self, iterator: Any) -> Any:
        return self.by.train(self.function, iterator)


@cache
def _callback_class(of: Any) -> Any:
    """Return a class that is a callback of Keras too, of the same name."""
    tensorflow()
    import keras

    made = type(of.__name__, (of, keras.callbacks.Callback), {"__doc__": of.__doc__})
    made.__module__, made.__qualname__ = of.__module__, of.__qualname__
    return made


# The callbacks of a `fit`: which stand beside ResumeFit, and what they need of it.

_STATEFUL = {
    "EarlyStopping": "the epochs that it has waited for",
    "ReduceLROnPlateau": "the epochs that it has waited for",
    "SwapEMAWeights": "which of its two sets of weights are the averages",
}


def callbacks_of_fit() -> Sequence[Any]:
    """Return the callbacks of the `fit` that calls one of them; none is told of the others."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        caller = frame.f_locals.get("self")
        if type(caller).__name__ == "CallbackList":
            return tuple(getattr(caller, "callbacks", ()))
        frame = frame.f_back
    raise UsageError("ResumeFit is a callback: model.fit(.., callbacks=[.., ResumeFit(position)])")


def backups_among(callbacks: Sequence[Any]) -> list[Any]:
    """Return the callbacks that are a BackupAndRestore."""
    import keras

    return [c for c in callbacks if isinstance(c, keras.callbacks.BackupAndRestore)]


def check_callbacks(callbacks: Sequence[Any], own: Any) -> None:
    """Refuse callbacks beside which a run cannot go on as one that nobody stopped.

    Raises:
        UsageError: BackupAndRestore is missing, or behind `own`; or a callback begins anew what it
            has to go on with.
    """
    backups = backups_among(callbacks)
    if len(backups) != 1 or callbacks.index(backups[0]) > callbacks.index(own):
        raise UsageError(
            f"{len(backups)} callbacks are a keras.callbacks.BackupAndRestore; ResumeFit keeps the "
            "position in the file that one saves, so it stands behind it: "
            "callbacks=[BackupAndRestore(..), ResumeFit(..)]"
        )
    if sum(isinstance(c, type(own)) for c in callbacks) > 1:
        raise UsageError("one fit has one position: one ResumeFit is needed, and there are more")
    for callback in callbacks:
        for kind in type(callback).__mro__:
            what = _STATEFUL.get(kind.__name__)
            if what is not None and kind.__module__.startswith("keras."):
                raise UsageError(
                    f"{kind.__name__} begins anew when a run is started again, for nothing keeps "
                    f"{what}; the run would end otherwise than one that nobody stopped: leave it "
                    "out"
                )


def show_length(callbacks: Sequence[Any], num_steps: int) -> None:
    """Tell progress bars, and whoever asks `params`, how long an epoch is, as Keras would."""
    import keras

    for callback in callbacks:
        if isinstance(callback, keras.callbacks.ProgbarLogger):
            callback.target = num_steps
        elif callback.params:
            callback.params["steps"] = num_steps


def learning_rate(model: Any) -> float | None:
    """Return the learning rate that was restored, None where it follows a schedule or is none."""
    import keras

    variable = getattr(model.optimizer, "learning_rate", None)
    return float(variable.numpy()) if isinstance(variable, keras.Variable) else None


def metrics_of_none(model: Any, element_spec: Any) -> dict[str, Any]:
    """Return the metrics of an epoch of which no batch is left.

    Those of `compile` have no variables before the first step, and Keras asks them all the same.
    """
    metrics = model._compile_metrics
    if metrics is not None and not metrics.built:
        model._symbolic_build(data_batch=element_spec)
    results: dict[str, Any] = model.get_metrics_result()
    return results


# What `fit` does that a position cannot follow, refused before it trains.

# Datasets of tf.data that hand out element for element what they are given.
_ONE_FOR_ONE = (
    *("_MapDataset", "_ParallelMapDataset", "_PrefetchDataset", "_OptionsDataset"),
    # Of tf.distribute, here for one worker: a batch in as many parts as there are replicas.
    *("_AutoShardDataset", "_RestructuredDataset", "_RebatchDataset", "_LegacyRebatchDataset"),
)


def check_model(model: Any) -> None:
    """Refuse a model whose `fit` takes batches otherwise than one by one, in this process.

    Raises:
        UsageError: another backend than TensorFlow, several steps an execution, or several workers.
    """
    import keras

    if keras.backend.backend() != "tensorflow":
        raise UsageError(
            f"ResumeFit is for Keras on TensorFlow, and this is on {keras.backend.backend()}: "
            "count the position in a loop of your own, or train with KERAS_BACKEND=tensorflow"
        )
    if (steps := model.steps_per_execution) != 1:
        raise UsageError(
            f"steps_per_execution={steps}: a run may be saved between batches that Keras counts "
            "as one; compile(steps_per_execution=1)"
        )
    tf = tensorflow()
    strategy = model.distribute_strategy
    alone = (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy)
    by_default = type(strategy).__name__ == "_DefaultDistributionStrategy"
    if not (by_default or type(strategy) in alone) or keras.distribution.distribution() is not None:
        raise UsageError(
            f"{type(strategy).__name__}: ResumeFit follows fit in one process; tf.data would part "
            "this dataset among workers by a rule of its own"
        )


def check_dataset(iterator: Any, position: object) -> None:
    """Refuse an iterator of `fit` that reads something else than `position.dataset()`.

    Raises:
        UsageError: another dataset, or one that was shuffled, cut or batched once more.
    """
    for worker in getattr(iterator, "_iterators", None) or [iterator]:
        dataset = getattr(worker, "_dataset", worker)
        while position_of(dataset) is not position:
            name = type(dataset).__name__
            inputs = dataset._inputs() if hasattr(dataset, "_inputs") else []
            if name not in _ONE_FOR_ONE or len(inputs) != 1 or leaves_order_open(dataset):
                raise UsageError(
                    f"fit reads a {name.strip('_')} that is not position.dataset(), or is behind "
                    "it: give fit position.dataset(transform=..) of the position that ResumeFit "
                    "has; behind it only map and prefetch, without deterministic=False, leave the "
                    "batches what they are"
                )
            dataset = inputs[0]
