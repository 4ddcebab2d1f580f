"""Keras `fit`: one dataset for each of its epochs, a callback that resumes at the next batch."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any, Self

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.text import choices, quoted
from shardctl.errors import DatasetError, UsageError
from shardctl.settings.keywords import FitSettings, Unpack
from shardctl.settings.read_settings import SettingsLike, as_settings, refuse_loader
from shardctl.spec.host import HostLike
from shardctl.tfds.builder_layout import Builder
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.position import Position
from shardctl.tfds.position_counting import calls_behind
from shardctl.tfds.training.own_elements import element_after, num_examples_before, width_of
from shardctl.tfds.training.pipeline import Transform, real_dataset
from shardctl.tfds.training.read_config import check_host
from shardctl.tfds.training.resume import dataset_to_resume


@checked
def keras_epochs(
    builder: Builder,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    epochs: int,
    initial_epoch: int = 0,
    steps: int = 0,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
    **keywords: Unpack[FitSettings],
) -> Iterator[tuple[int, Any]]:
    """Return (epoch, `tf.data.Dataset`) for each epoch that `fit(epochs=epochs)` has left.

    `fit(initial_epoch=k)` does not resume: it begins a new pass over the dataset, and trains on the
    order of epoch 0 again. If the length of a dataset is known, Keras makes two iterators an epoch,
    so that an uninterrupted run trains on every other order. Each dataset here is one epoch of that
    run, in its order, however often Keras begins it:

        for epoch, dataset in keras_epochs(builder, "train", settings, epochs=9, initial_epoch=4):
            model.fit(dataset, initial_epoch=epoch, epochs=epoch + 1)

    The uninterrupted run is `model.fit(pipeline(builder, spec, settings), epochs=epochs)`, without
    steps_per_epoch. The first dataset leaves out `steps` batches of its epoch; after its last step
    it is that of the next epoch. Settings with `epochs` above 1 repeat the dataset within each
    epoch of `fit`. `transform` should make the pairs (x, y) that Keras trains on, as TFDS's
    `as_supervised` does. `host` is that of `resume`.

    Source: keras/src/trainers/epoch_iterator.py, of Keras 3.

    Raises:
        UnpredictableOrderError: the order is nondeterministic. With `settings.epochs` above 1 and
            no partial last batch it is too: what Keras reads ahead depends on timing.
        UsageError: no such epoch or step, no batch size, a pass index in the settings, which the
            epochs of `fit` count, settings for another host, or a global seed in force as for
            `resume`. One that is set after this call, for a model's weights, changes nothing.
    """
    settings = as_settings(settings)
    refuse_loader(settings, "keras_epochs", "fit takes a loader as it is")
    position = Position(builder, spec, settings)
    fit = FitEpochs(position, epochs, None)
    if not 0 <= initial_epoch <= epochs:
        raise UsageError(f"initial_epoch={initial_epoch}: fit has epochs 0 to {epochs}")
    if not 0 <= steps <= fit.length or (steps and initial_epoch == epochs):
        raise UsageError(
            f"steps={steps} of epoch {initial_epoch}: fit has {epochs} epochs of {fit.length} steps"
        )
    if steps == fit.length:  # the end of an epoch is the start of the next
        initial_epoch, steps = initial_epoch + 1, 0
    if position.settings.host is not None:
        check_host(position.settings.host, host)

    # A generator, so that the position moves on only when the caller asks for the next epoch.
    def each() -> Iterator[tuple[int, Any]]:
        how = {"transform": transform, "decoders": decoders}
        # `real` builds a pipeline with stages once for all epochs, if their plans need it.
        real = cache(partial(real_dataset, builder, spec, position.settings, **how))
        for epoch in range(initial_epoch, epochs):
            fit.begin(epoch)
            # `begin` puts the position at the start of the epoch; only the first one starts inside.
            if epoch == initial_epoch:
                position.advance(num_examples_before(position.planned.order, steps))
            plan = position.plan()
            yield (
                epoch,
                dataset_to_resume(builder, plan, host, checks_seed=False, real=real, **how),
            )

    return each()


# Where a position is while `fit` trains: which step of which epoch, and what they read.


@dataclass(frozen=True, kw_only=True)
class FitPlace:
    """How far a `fit` has come: `steps` batches of `epoch`.

    is_over: no batch of the epoch is left, and all callbacks know it.
    steps_per_epoch: that of `fit`, None where an epoch is as long as the dataset.
    is_stopped: a callback has ended the training, as EarlyStopping does.
    """

    epoch: int
    steps: int
    is_over: bool
    steps_per_epoch: int | None
    is_stopped: bool = False

    @property
    def next_epoch(self) -> int:
        """The epoch with which `fit` continues."""
        return self.epoch + self.is_over

    def with_position(self, position: Position, **others: Any) -> bytes:
        """Return it, the state of a position and others as JSON."""
        # The position's own state is JSON as well. It is nested as a value, so one file holds both
        # and neither is escaped.
        state = json.loads(position.get_state())
        return json.dumps({"fit": vars(self), "position": state, **others}).encode("ascii")


def place_and_position(state: bytes) -> tuple[FitPlace, bytes, dict[str, Any]]:
    """Return what `with_position` wrote, the state of the position in it, and all of it.

    Raises:
        DatasetError: something else.
    """
    try:
        document = json.loads(state)
        position = json.dumps(document["position"]).encode("ascii")
        return FitPlace(**document["fit"]), position, document
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(f"the weights hold a position that cannot be read: {error}") from error


class FitEpochs:
    """The epochs of one `fit`, each a part of the order of a position, which is moved along.

    Without `steps_per_epoch` epoch e is pass e over the pipeline as `fit` makes them; with it the
    one order of the position is cut into epochs.

    Raises:
        UsageError: no batches, a position of a pass of its own, or an order that ends before
            `fit` does.
        UnpredictableOrderError: the order of later epochs is nondeterministic.
    """

    def __init__(self, position: Position, num_epochs: int, steps_per_epoch: int | None) -> None:
        self._position, self._size = position, steps_per_epoch
        # Kept apart from `position.planned`, which changes with every epoch of a fit without
        # steps_per_epoch.
        self._start = position.planned.with_settings(position.settings)
        settings = position.settings
        if position.is_shared:
            raise UsageError(
                "the run was shared among other hosts, whose part has no epochs of fit: train on "
                "position.dataset() in a loop of your own"
            )
        if not self._start.order.has_steps:
            raise UsageError(
                "fit trains on batches: give ReadSettings(batch=N), or a stage batch(N)"
            )
        if index := settings.pass_index:
            raise UsageError(f"--pass-index {quoted(index)}: the epochs of fit count the passes")
        self._order = self._start.order
        # Without steps_per_epoch Keras ends an epoch where the dataset ends, so its length must be
        # known. Each epoch is then a pass of its own over the pipeline.
        if steps_per_epoch is None:
            if not (count := self._order.num_steps):
                has = "none" if count is None else "no batches"
                raise UsageError(
                    f"fit has no end of an epoch without steps_per_epoch, for the order has {has}"
                )
            # The last epoch stands for all: what is nondeterministic in any later pass is so in the
            # last.
            last = replace(position.settings, pass_index=max(num_epochs - 1, 0), loop="keras-fit")
            # What is left open is refused now, and not when that epoch begins.
            self._start.with_settings(last).order.examples_in_steps(0, 1)
        elif settings.loop == "keras-fit":
            raise UsageError(
                "--loop keras-fit is fit without steps_per_epoch; with it one iterator runs "
                "through the epochs: leave --loop out"
            )
        # With steps_per_epoch, Keras keeps one iterator for all epochs. The order must therefore be
        # long enough for their sum.
        elif self._order.steps_up_to(wanted := num_epochs * steps_per_epoch) < wanted:
            raise UsageError(
                f"epochs={num_epochs} of steps_per_epoch={steps_per_epoch} are {wanted} batches, "
                f"and the order has {self._order.num_steps or 0}: give "
                "ReadSettings(epochs=..) that are enough for all, or fewer steps"
            )
        self.epoch = self.steps = self.num_steps = 0

    @property
    def length(self) -> int:
        """Number of batches of the first epoch."""
        return self._size or self._order.num_steps or 0

    @property
    def num_left(self) -> int:
        """Number of batches that the epoch has left."""
        return self.num_steps - self.steps

    def place(self, *, is_over: bool, is_stopped: bool = False) -> FitPlace:
        """Return where the position is."""
        return FitPlace(
            epoch=self.epoch,
            steps=self.steps,
            is_over=is_over,
            steps_per_epoch=self._size,
            is_stopped=is_stopped,
        )

    def start(self, epoch: int) -> None:
        """Go to the start of the first epoch, or stay where the position is in the midst of it.

        Raises:
            UsageError: the position is elsewhere, so that `fit` would leave out or repeat what it
                has yielded.
        """
        position = self._position
        # Where the position may be at the first epoch: at its start, at the end of the one before,
        # or, without steps_per_epoch, inside it. Anything else is the position of another loop.
        of_fit, consumed = position.epoch_of_fit, position.consumed
        if self._size is not None:
            begins = of_fit is None and consumed == self._before(epoch)
        elif of_fit == epoch and 0 < consumed < position.num_examples:
            self.epoch = epoch
            self._follow()
            self.steps = element_after(self._order, consumed)
            return
        else:
            # `of_fit` is None while no epoch was begun; (-1, ..) therefore never equals it for
            # epoch 0.
            ends = (epoch - 1, position.num_examples)
            begins = (of_fit, consumed) in ((epoch, 0), ends)
        if not begins and (consumed or of_fit):
            raise UsageError(
                f"{position!r} is not where epoch {epoch} of this fit begins: "
                "give fit the initial_epoch that comes next, or make a new Position"
            )
        self.begin(epoch)

    def begin(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self.epoch, self.steps = epoch, 0
        if self._size is None:
            self._position.begin_epoch_of_fit(epoch)
            self._follow()
        else:
            self._position.advance(self._before(epoch) - self._position.consumed)
            self.num_steps = self._size

    def resume(self, place: FitPlace, state: bytes) -> None:
        """Go to where a `fit` was when its weights were saved.

        Raises:
            UsageError: that was a `fit` of other epochs, or the position one in another order.
            DatasetError: the dataset is another one, or the place is not that of the position.
        """
        if place.steps_per_epoch != self._size:
            raise UsageError(
                f"the run that is restored had steps_per_epoch={place.steps_per_epoch}, and this "
                f"has {self._size}: its epochs are other ones"
            )
        # The state is checked before anything here changes: a refused restore leaves the fit as it
        # was.
        self._position.set_state(state)
        self.epoch, self.steps = place.epoch, place.steps
        self._follow()
        # The place and the position were written together. If they disagree, the file was edited or
        # put together from two saves.
        at = num_examples_before(self._order, self._first + place.steps)
        epoch = None if self._size is not None else place.epoch
        if (self._position.consumed, self._position.epoch_of_fit) != (at, epoch):
            raise DatasetError(
                f"step {place.steps} of epoch {place.epoch} is not {self._position!r}"
            )

    def trained(self) -> None:
        """Count a batch that the model was trained on."""
        # The width comes from the order, since the last batch of an epoch may be smaller.
        self._position.advance(width_of(self._order, self._first + self.steps))
        self.steps += 1

    @property
    def _first(self) -> int:
        """The element with which the epoch begins, of those in which steps are counted."""
        # Elements are counted from the start of the order if it is one for all epochs
        # (steps_per_epoch), and from the start of the epoch otherwise; then `_size` is None and
        # this is 0.
        return self.epoch * (self._size or 0)

    def _follow(self) -> None:
        if self._size is None:
            self._order = self._position.planned.order
        self.num_steps = self._size or self._order.num_steps or 0

    def _before(self, epoch: int) -> int:
        return num_examples_before(self._order, epoch * (self._size or 0))


# A place in `fit` inside the weights file of a Keras model, and files that are written whole.

_ATTRIBUTE = "_shardctl_place"
_ENTRY, _RANDOM, _METRIC, _ARRAY = "place", "random", "metric", "array"
_ENDING = ".weights.h5"
_METADATA = "training_metadata.json"


@cache
def _place_in_weights() -> Any:
    # What saving_lib saves of the attributes of a model; Keras exports no public name of it.
    from keras.src.saving.keras_saveable import KerasSaveable

    class PlaceInWeights(KerasSaveable):  # type: ignore[misc]
        """What a model saves and loads besides its weights, in the same file: a place, as bytes.

        Weights and place are then of the same moment, whichever file is loaded. So are the states
        of random numbers, of dropout for one, and of metrics, which Keras leaves out, and the
        arrays that the place refers to. `found` says whether weights were loaded, `loaded` what
        place they had, `metrics` and `arrays` what is put back later.
        """

        def __init__(self, place: Callable[[list[Any]], bytes | None], model: Any) -> None:
            # The model holds this object, so a strong reference back would keep the model alive.
            self._place = place
            self._model: Callable[[], Any] = weakref.ref(model)
            self.found = False
            self.loaded: bytes | None = None
            self.metrics: list[Any] = []
            self.arrays: list[Any] = []

        def _obj_type(self) -> str:
            return "Loss"  # saving_lib knows a few kinds; one without variables of its own

        def save_own_variables(self, store: Any) -> None:
            arrays: list[Any] = []
            place, model = self._place(arrays), self._model()
            # Weights files (HDF5) hold arrays, so the bytes of the place become an array of uint8.
            if place is not None:
                store[_ENTRY] = np.frombuffer(place, np.uint8)
            states = map(_numpy, _random_states(model))
            metrics = (np.stack([*map(_numpy, _parts(v))]) for v in model.metrics_variables)
            for kind, values in ((_RANDOM, states), (_METRIC, metrics), (_ARRAY, arrays)):
                for index, value in enumerate(values):
                    store[f"{kind}{index}"] = value

        def load_own_variables(self, store: Any) -> None:
            self.found = True
            names = set(store.keys())
            has_one = _ENTRY in names
            self.loaded = bytes(np.asarray(store[_ENTRY], np.uint8)) if has_one else None
            # A file without a place was saved without ResumeFit. It has no random states either.
            if has_one:
                for index, state in enumerate(_random_states(self._model())):
                    state.assign(np.asarray(store[f"{_RANDOM}{index}"]))
            # `fit` sets metrics to 0 as an epoch begins, so they are put back after that.
            self.metrics, self.arrays = (
                [np.asarray(store[name]) for name in takewhile(names.__contains__, every)]
                for every in (map(f"{kind}{{}}".format, count()) for kind in (_METRIC, _ARRAY))
            )

    return PlaceInWeights


def _numpy(variable: Any) -> Any:
    import keras

    return keras.ops.convert_to_numpy(variable)


def _parts(variable: Any) -> Sequence[Any]:
    """Return the variables of which one of a metric is made: of each replica of tf.distribute."""
    # Their sum alone would be rounded otherwise when it is parted again.
    parts = getattr(variable._value, "values", None)
    return parts if isinstance(parts, tuple) else [variable]


def _random_states(model: Any) -> list[Any]:
    """Return the variables of random numbers that the layers of a model draw from."""
    # Weights and metrics are saved by Keras itself. What is left of `variables` are the seeds of
    # random layers.
    others = {id(variable) for variable in (*model.weights, *model.metrics_variables)}
    states = [variable for variable in model.variables if id(variable) not in others]
    # On torch a Dropout without a seed of its own draws from the generator of the process.
    return [*states, _TorchGenerator()] if _backend() == "torch" else states


class _TorchGenerator:
    """The default generator of torch, with the two methods of a variable that are needed here."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        import torch

        return torch.get_rng_state().numpy()

    def assign(self, state: Any) -> None:
        import torch

        torch.set_rng_state(torch.from_numpy(state))


def leave_generator(adapter: Any) -> None:
    """Let the iterators of a `fit` on torch draw nothing from the default generator.

    Each iterator of a DataLoader draws a seed that nothing uses. A resumed run makes one more.
    """
    import torch

    loader = adapter.get_torch_dataloader()
    loader.generator = torch.Generator()
    adapter.get_torch_dataloader = lambda: loader


def save_weights_whole(model: Any) -> None:
    """Let a model write its weights files beside their place first, and then move them there.

    Keras writes over the file that is there, so a process killed meanwhile leaves a broken file. A
    path that is not local is left to Keras.
    """
    if getattr(model.save_weights, "_is_whole", False):
        return
    save = model.save_weights

    def save_whole(filepath: Any, overwrite: bool = True, **options: Any) -> Any:
        path = os.fspath(filepath)
        # Keras asks the user before it overwrites; its own function must do so.
        asks_first = not overwrite and os.path.exists(path)
        # What is not one local file of weights, or has options that we do not know, goes to Keras
        # as it is.
        if "://" in path or not path.endswith(_ENDING) or options or asks_first:
            return save(filepath, overwrite=overwrite, **options)
        # The new file keeps the ending, by which Keras chooses the format.
        new = f"{path.removesuffix(_ENDING)}.new{_ENDING}"
        save(new, overwrite=True)
        # A rename within one folder is atomic: the old file or the new one, never a part.
        os.replace(new, path)
        return None

    # `fit` may be called again on the same model, which must not be wrapped twice.
    save_whole._is_whole = True  # type: ignore[attr-defined]
    model.save_weights = save_whole


def drop_torn_metadata(folder: str) -> None:
    """Delete a `training_metadata.json` that was not written to its end, without which Keras fails.

    It says which epoch comes next, which the weights file does too.
    """
    file = Path(folder, _METADATA)
    # A file that is missing, or that another process deleted, is no problem.
    with contextlib.suppress(OSError):
        try:
            json.loads(file.read_text("utf-8"))["epoch"]
        except (ValueError, KeyError, TypeError):
            file.unlink()


# A callback with which Keras `fit` continues with the very batch at which it was stopped.


# What `model.stop_training` is from the last batch of an epoch to the end of its loop.
_END_OF_EPOCH = object()


class _FitCallback:
    """What ResumeFit does when Keras calls it."""

    model: Any  # of Keras's Callback, as are the next
    _model: Any  # on JAX `model` is in step with the training, and this is not
    params: dict[str, Any]

    def __init__(self, position: Position) -> None:
        super().__init__()
        self._position = position
        self._in_weights: Any = None
        self._epochs: FitEpochs | None = None
        self._callbacks: Sequence[Any] = ()
        self._resumed: FitPlace | None = None
        self._states: list[tuple[str, Any]] | None = None  # of callbacks, to be put back
        self._logs: Any = None  # of the last batch
        self._has_begun = False  # an epoch of this fit
        self._is_over = False  # the epoch, and all callbacks but BackupAndRestore know it

    def set_model(self, model: Any) -> None:
        """Let the model load a place with the weights that BackupAndRestore will restore."""
        super().set_model(model)  # type: ignore[misc]
        callbacks = loop_of_fit()[0].callbacks
        # BackupAndRestore stands before this callback, but Keras calls `set_model` of all callbacks
        # before any `on_train_begin`. So the file is repaired before it is read.
        for backup in backups_among(callbacks):
            drop_torn_metadata(backup.backup_dir)
            if os.path.exists(backup._weights_path):
                # A CSVLogger would empty its file as the training begins.
                for callback in callbacks:
                    if _kind(callback) == "CSVLogger":
                        callback.append = True
        # BackupAndRestore loads the weights in its `on_train_begin`, which comes before ours. The
        # model must have the attribute by then, for saving_lib to load it.
        self._in_weights = _place_in_weights()(self._place, model)
        setattr(model, _ATTRIBUTE, self._in_weights)

    def on_train_begin(self, logs: Any = None) -> None:
        """Go to the place of the weights that were restored."""
        # The order matters: callbacks and model are checked before the position or the model is
        # touched.
        loop, batches = loop_of_fit()
        callbacks = tuple(loop.callbacks)
        check_callbacks(callbacks, self)
        check_model(self.model, self.params["steps"])
        check_dataset(getattr(batches.data_adapter, "_dataset", None), self._position)
        states_of(callbacks, [])
        # Keras has set `params` before `on_train_begin`: epochs and steps_per_epoch of this fit.
        self._epochs = FitEpochs(self._position, self.params["epochs"], self.params["steps"])
        show_length(callbacks, self._epochs.length)
        save_weights_whole(self.model)
        if _backend() == "torch":
            leave_generator(batches.data_adapter)
        self._has_begun = self._is_over = False
        self._resumed = resumed = self._restored(self._epochs, callbacks)
        # BackupAndRestore has taken its from a file of its own, which may be older.
        self.model._initial_epoch = None
        if resumed is not None:
            ends = resumed.is_over and resumed.is_stopped
            self.model._initial_epoch = self.params["epochs"] if ends else resumed.next_epoch
            if not resumed.is_over and (resumed.steps or resumed.is_stopped):
                self._continue_epoch(loop, batches)
        # From here on all others hear of each event after this callback and before the backup. So
        # what is saved is the state of each of them after the same event.
        backup = backups_among(callbacks)[0]
        others = [c for c in callbacks if c not in (self, backup)]
        loop.callbacks, self._callbacks = [self, *others, backup], callbacks

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Go to the start of an epoch, unless a run continues in the midst of it."""
        # Three cases: the first epoch of a fit that was not restored; an epoch that follows
        # another, or a restored one that was complete; and one that resumes in the middle, where
        # nothing moves.
        epochs, resumed = self._of_fit(), self._resumed
        if resumed is not None and resumed.next_epoch != epoch:
            raise UsageError(
                f"the restored run continues with epoch {resumed.next_epoch}, and fit begins "
                f"with epoch {epoch}: give fit the initial_epoch that the run had"
            )
        self._put_back()
        self._states = None
        if not self._has_begun and resumed is None:
            epochs.start(epoch)
        elif resumed is None or resumed.is_over:
            epochs.begin(epoch)
        is_first, self._has_begun, self._is_over = not self._has_begun, True, False
        appends = any(_kind(c) == "CSVLogger" and c.append for c in self._callbacks)
        if is_first and resumed is None and appends:
            # Rows that a run adds before its first save would be those of an earlier run.
            if not self.model.optimizer.built:
                self.model.optimizer.build(self.model.trainable_variables)
            backups_among(self._callbacks)[0]._save_model()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Count the batches of a step, and end the epoch with its last one."""
        epochs, self._logs = self._of_fit(), logs
        # With steps_per_execution the last step of an epoch may have fewer.
        for _ in range(min(self._model.steps_per_execution, epochs.num_left)):
            epochs.trained()
        # Keras ends its loop over batches when `stop_training` is true; it is looked at after each
        # step (keras/src/backend/*/trainer.py, fit). The value is an object of ours, so that a true
        # value set by another callback is left alone.
        if not epochs.num_left and not self._model.stop_training:
            self._model.stop_training = _END_OF_EPOCH

    def on_test_begin(self, logs: Any = None) -> None:
        """Continue with training after the end of an epoch's batches."""
        # Validation begins after the loop over batches and has a loop of its own that would end at
        # once.
        self._go_on()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Continue with training after the end of an epoch."""
        self._go_on()
        epochs, self._is_over = self._of_fit(), True
        if self._resumed is not None and self._resumed.is_stopped:
            self.model.stop_training = True
        self._resumed = None
        # Fewer batches than the order has: the dataset was cut somewhere on its way to `fit`.
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
        if not self._has_begun:  # all epochs were trained before; callbacks end as they did then
            self._put_back()
            self._is_over = self._resumed is not None
        for backup in backups_among(self._callbacks):
            # `save_freq` is "epoch", False or a number of batches. The last is the one whose newest
            # save may be older than the end. With `use_ema` the weights are averages by now.
            by_batches = backup.save_freq not in ("epoch", False)
            uses_ema = getattr(self.model.optimizer, "use_ema", False)
            # A backup that is deleted at the end of a complete fit is of no use to the next run.
            if self._has_begun and by_batches and not (backup.delete_checkpoint or uses_ema):
                backup._save_model()
        if hasattr(self.model, _ATTRIBUTE):
            delattr(self.model, _ATTRIBUTE)
        self.model._initial_epoch = self._resumed = None
        loop_of_fit()[0].callbacks = [*self._callbacks]

    def _of_fit(self) -> FitEpochs:
        assert self._epochs is not None
        return self._epochs

    def _place(self, arrays: list[Any]) -> bytes | None:
        """Return the place of this moment, which weights that are saved now have."""
        if self._epochs is None:
            return None
        stop = self._model.stop_training
        return self._epochs.place(
            is_over=self._is_over, is_stopped=bool(stop) and stop is not _END_OF_EPOCH
        ).with_position(
            self._position,
            callbacks=states_of(self._callbacks, arrays),
            logs=packed(self._logs, arrays),
        )

    def _restored(self, epochs: FitEpochs, callbacks: Sequence[Any]) -> FitPlace | None:
        # `found` without `loaded`: weights were restored, but no position came with them. To begin
        # at example 0 with trained weights would look right and be wrong.
        self._states = None
        if self._in_weights.loaded is None:
            if self._in_weights.found:
                raise UsageError(
                    "the weights that BackupAndRestore has restored come without a position: they "
                    "were saved without ResumeFit; begin with another backup_dir"
                )
            return None
        place, state, document = place_and_position(self._in_weights.loaded)
        if "callbacks" in document:  # older files have none
            arrays = self._in_weights.arrays
            try:
                self._states = [(kind, unpacked(s, arrays)) for kind, s in document["callbacks"]]
                self._logs = unpacked(document["logs"], arrays)
            except (ValueError, TypeError, KeyError, IndexError) as error:
                raise DatasetError(
                    f"the weights hold states of callbacks that cannot be read: {error}"
                ) from error
            then, now = ([kind for kind, _ in s] for s in (self._states, states_of(callbacks, [])))
            if then != now:
                raise UsageError(
                    f"the run that is restored had the callbacks {choices(then)}, and this has "
                    f"{choices(now)}, whose states it does not hold: give those of then in their "
                    "order, or begin with another backup_dir"
                )
        epochs.resume(place, state)
        return place

    def _put_back(self) -> None:
        """Give the callbacks the states that were saved with the weights."""
        if self._states is not None:
            stateful = filter(_kind, self._callbacks)
            for callback, (_, state) in zip(stateful, self._states, strict=True):
                put_state(callback, state)

    def _continue_epoch(self, loop: Any, batches: Any) -> None:
        """Let the next loop over batches begin where the run was, with its metrics.

        Keras has then reset the metrics, and callbacks have begun the epoch once more.
        """
        model, begin = self.model, batches._enumerate_iterator
        states, epochs = self._states, self._of_fit()
        # What begins an epoch, as LearningRateScheduler, has set rates before the run was stopped.
        rates = [v for v in model.optimizer.variables if v.path.endswith("learning_rate")]
        rates_then = [*map(_numpy, rates)]
        stopped = self._resumed is not None and self._resumed.is_stopped

        def rest() -> Iterator[Any]:
            del batches._enumerate_iterator
            self._states = states
            self._put_back()
            self._states = None
            # Metrics of `compile` have no variables before the first step.
            metrics = model._compile_metrics, model._compile_loss
            if not all(one is None or one.built for one in metrics):
                model._symbolic_build(data_batch=batches.data_adapter._dataset.element_spec)
            if states is not None:  # else an older file
                put_metrics(model, self._in_weights.metrics)
            for variable, value in zip(rates, rates_then, strict=True):
                variable.assign(value)
            first = epochs.steps
            if epochs.num_left and not stopped:
                yield from ((first + at, first + to, each) for at, to, each in begin())
                return
            # No batch is left, and the end of the epoch is still to come. Keras needs a step to
            # have logs; this one trains on nothing, and no callback hears of it.
            function = model.train_function
            of_jax = _backend() == "jax"
            model.train_function = lambda *given: (self._logs, given[0]) if of_jax else self._logs
            loop.on_train_batch_begin = loop.on_train_batch_end = lambda *_, **__: None
            yield first, first, iter([None])
            del loop.on_train_batch_begin, loop.on_train_batch_end
            model.train_function = function

        batches._enumerate_iterator = rest

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
    that was not interrupted. The position is in the weights file that BackupAndRestore writes: both
    are of one moment. The file gets its name when it is whole.

    Epoch e of `fit` trains on what `shardctl simulate --loop keras-fit --pass-index e` shows,
    which is that of `fit` over `pipeline(builder, spec, settings)`; with `steps_per_epoch` on its
    part of the one order of `settings.epochs` epochs. Metrics, the logs of an epoch, and Keras's
    callbacks that count or compare (EarlyStopping, ReduceLROnPlateau, ModelCheckpoint, CSVLogger,
    TensorBoard, SwapEMAWeights, History) continue as well. A callback of your own does if it has
    `get_state()`, which returns numbers, texts, arrays, lists or dicts of them, and
    `set_state(state)`.

    Proven with Keras 3.15 on TensorFlow, JAX and torch on a CPU.

    Raises (as `fit` begins):
        UsageError: BackupAndRestore is missing or follows; a callback whose state is not restored;
            `steps_per_execution` that does not divide `steps_per_epoch`; several processes; torch
            on a GPU or compiled; another dataset than the position's, or one that was shuffled or
            batched again; a position elsewhere than where `fit` begins; an order that is shorter
            than `fit`; other callbacks with states than those of the run that is restored.
        DatasetError: what is restored is of another dataset.
        UnpredictableOrderError: the order of later epochs is nondeterministic.
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


@cache
def _callback_class(of: Any) -> Any:
    """Return a class that is a callback of Keras too, of the same name."""
    tensorflow()
    import keras

    # A subclass of Keras's Callback as well. It is made at the first call, so that importing
    # this module does not import Keras.
    made = type(of.__name__, (of, keras.callbacks.Callback), {"__doc__": of.__doc__})
    made.__module__, made.__qualname__ = of.__module__, of.__qualname__
    return made


# The callbacks of a `fit`: which stand beside ResumeFit, what they need of it, and their states.

# Attributes that a callback of Keras changes while it trains, beside what a new one makes of its
# arguments and of the model (keras/src/callbacks, 3.15).
_KEPT = {
    "BackupAndRestore": ("_batches_seen_since_last_saving", "_last_batch_seen", "_current_epoch"),
    "CSVLogger": ("keys",),
    "EarlyStopping": ("wait", "stopped_epoch", "best", "best_weights", "best_epoch"),
    "History": ("history", "epoch"),
    "ModelCheckpoint": ("best", "_batches_seen_since_last_saving", "_last_batch_seen"),
    "ReduceLROnPlateau": ("wait", "cooldown_counter", "best"),
    "SwapEMAWeights": ("_ema_weights_in_model",),
    "TensorBoard": ("_global_train_batch", "_global_test_batch"),
}
_STATELESS = frozenset(
    ("LambdaCallback", "LearningRateScheduler", "ProgbarLogger", "RemoteMonitor", "TerminateOnNaN")
)
_OWN = "get_state"  # a callback of the user's, which is asked


def _kind(callback: Any) -> str | None:
    """Return the kind of a callback that has a state, None where it has none that we know."""
    kind = type(callback)
    if callable(getattr(kind, _OWN, None)) and callable(getattr(kind, "set_state", None)):
        return f"{kind.__name__}.{_OWN}"
    # By name and module of any base class, so that a subclass of EarlyStopping is found as well.
    names = [base.__name__ for base in kind.__mro__ if base.__module__.startswith("keras.")]
    return next((name for name in names if name in _KEPT), None)


def states_of(callbacks: Sequence[Any], arrays: list[Any]) -> list[tuple[str, Any]]:
    """Return the kind and the state of each callback that has one; arrays are added to `arrays`.

    Raises:
        UsageError: a callback of the user's has a state that cannot be written.
    """
    states = []
    for callback in callbacks:
        if (kind := _kind(callback)) is None:
            continue
        if kind in _KEPT:
            state = {name: getattr(callback, name, None) for name in _KEPT[kind]}
            if kind == "CSVLogger":
                file = callback.csv_file
                state["size"] = os.path.getsize(callback.filename) if file else 0
            if kind == "TensorBoard":
                # A kill loses what a writer holds back, and no run writes it again.
                for writer in callback._writers.values():
                    writer.flush()
        else:
            state = callback.get_state()
        try:
            states.append((kind, packed(state, arrays)))
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"the state of {kind} cannot be kept in a weights file: {error}; numbers, texts, "
                "arrays, lists and dicts of them can"
            ) from error
    return states


def put_state(callback: Any, state: Any) -> None:
    """Give a callback the state that `states_of` returned.

    Raises:
        DatasetError: the file of a CSVLogger is shorter than it was.
    """
    if (kind := _kind(callback)) not in _KEPT:
        callback.set_state(state)
        return
    for name in _KEPT[kind]:
        setattr(callback, name, state[name])
    if kind == "TensorBoard":
        # `update_freq` asks for the number of the last batch, at the end of an epoch too.
        callback._pop_writer()
        callback._push_writer(callback._train_writer, callback._global_train_batch)
    if kind == "CSVLogger":
        # Rows of epochs that are trained again come again.
        size, now = state["size"], os.path.getsize(callback.filename)
        if now < size:
            raise DatasetError(
                f"{quoted(callback.filename)} has {now} bytes, and had {size} when the run was "
                "saved: rows are gone; put the file back, or begin with another backup_dir"
            )
        os.truncate(callback.filename, size)
        callback.append_header = not size


def packed(value: Any, arrays: list[Any]) -> Any:
    """Return a value as JSON has it; its arrays are added to `arrays`.

    Raises:
        TypeError: it is of another kind.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, dict):
        if strange := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"a dict has the key {strange[0]!r}, which is no text")
        return {"dict": {key: packed(each, arrays) for key, each in value.items()}}
    if isinstance(value, list | tuple):
        return [packed(each, arrays) for each in value]
    array = np.asarray(_numpy(value) if hasattr(value, "__array__") else value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a value is a {type(value).__name__}")
    arrays.append(array)
    return {"array": len(arrays) - 1}


def unpacked(value: Any, arrays: Sequence[Any]) -> Any:
    """Return the value of which `packed` was made."""
    if isinstance(value, list):
        return [unpacked(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[value["array"]][()]
    return {key: unpacked(each, arrays) for key, each in value["dict"].items()}


def loop_of_fit() -> tuple[Any, Any]:
    """Return the `CallbackList` and the batches of the `fit` that calls one of its callbacks.

    The batches are None while `fit` does not have them.
    """
    # Callbacks do not know each other. Keras keeps them in the `CallbackList` that calls them,
    # which is the `self` of a caller's frame, and the `epoch_iterator` is a variable of `fit`.
    frame, loop = sys._getframe(1).f_back, None
    while frame is not None:
        own = frame.f_locals
        if type(own.get("self")).__name__ == "CallbackList":
            loop = own["self"]
        if loop is not None and "epoch_iterator" in own:
            return loop, own["epoch_iterator"]
        frame = frame.f_back
    if loop is not None:
        return loop, None
    raise UsageError("ResumeFit is a callback: model.fit(.., callbacks=[.., ResumeFit(position)])")


def backups_among(callbacks: Sequence[Any]) -> list[Any]:
    """Return the callbacks that are a BackupAndRestore."""
    import keras

    return [c for c in callbacks if isinstance(c, keras.callbacks.BackupAndRestore)]


def check_callbacks(callbacks: Sequence[Any], own: Any) -> None:
    """Refuse callbacks beside which a run cannot continue as an uninterrupted one.

    Raises:
        UsageError: BackupAndRestore is missing, or behind `own`; or a callback begins anew what it
            has to continue with.
    """
    backups = backups_among(callbacks)
    # Keras calls callbacks in the order of the list. The weights must be restored before ResumeFit
    # reads the place in them.
    if len(backups) != 1 or callbacks.index(backups[0]) > callbacks.index(own):
        raise UsageError(
            f"{len(backups)} callbacks are a keras.callbacks.BackupAndRestore; ResumeFit keeps the "
            "position in the file that one saves, so it stands behind it: "
            "callbacks=[BackupAndRestore(..), ResumeFit(..)]"
        )
    if sum(isinstance(c, type(own)) for c in callbacks) > 1:
        raise UsageError("one fit has one position: one ResumeFit is needed, and there are more")
    for callback in callbacks:
        kind = type(callback)
        if _kind(callback) or kind.__name__ in _STATELESS or callback is own:
            if _kind(callback) == "CSVLogger" and "://" in callback.filename:
                raise UsageError(
                    f"CSVLogger({quoted(callback.filename)}): rows of epochs that are trained "
                    "again can be taken back in a local file only"
                )
        elif kind.__module__.startswith("keras."):
            raise UsageError(
                f"{kind.__name__} begins anew when a run is started again, for nothing keeps its "
                "state; the run would end otherwise than an uninterrupted one: leave it out"
            )
        elif names := vars(callback).keys() - {"params", "_model", "model"}:
            warnings.warn(
                f"{kind.__name__} begins anew when the run is started again. If training changes "
                f"one of its attributes ({choices(sorted(names))}), give it get_state() and "
                "set_state(state), which ResumeFit calls",
                stacklevel=2,
            )


def show_length(callbacks: Sequence[Any], num_steps: int) -> None:
    """Tell progress bars, and whoever asks `params`, how long an epoch is, as Keras would."""
    import keras

    for callback in callbacks:
        # `params` is one dict that the callbacks share; a progress bar has copied its length from
        # it already.
        if isinstance(callback, keras.callbacks.ProgbarLogger):
            callback.target = num_steps
        elif callback.params:
            callback.params["steps"] = num_steps


def put_metrics(model: Any, values: Sequence[Any]) -> None:
    """Put back the metrics of an epoch, as `PlaceInWeights` has saved them.

    Raises:
        UsageError: the model has others.
    """
    variables = [_parts(variable) for variable in model.metrics_variables]
    then = [np.shape(value) for value in values]
    if then != (now := [(len(parts), *parts[0].shape) for parts in variables]):
        raise UsageError(
            f"the run that is restored had metrics of shapes {then}, and the model has {now}: "
            "compile it with the metrics of then, for as many devices"
        )
    for parts, value in zip(variables, values, strict=True):
        for part, own in zip(parts, value, strict=True):
            part.assign(own)


# What `fit` does that a position cannot follow, refused before it trains.

# Datasets of tf.data that yield element for element what they are given.
_ONE_FOR_ONE = frozenset(("Map", "ParallelMap", "Prefetch", "Options", "Restructured"))


def _backend() -> str:
    import keras

    name: str = keras.backend.backend()
    return name


def check_model(model: Any, steps_per_epoch: int | None) -> None:
    """Refuse a model whose `fit` takes other batches than those of a position, in this process.

    Raises:
        UsageError: steps of an execution that cross the end of an epoch, several processes, or
            torch on a GPU or compiled.
    """
    import keras

    steps = model.steps_per_execution
    if (steps_per_epoch or 0) % steps:
        raise UsageError(
            f"steps_per_execution={steps} does not divide steps_per_epoch={steps_per_epoch}: Keras "
            "would train on more batches than these in each epoch; make it a multiple"
        )
    backend = _backend()
    if backend == "tensorflow":
        tf = tensorflow()
        strategy = model.distribute_strategy
        alone = (tf.distribute.MirroredStrategy, tf.distribute.OneDeviceStrategy)
        by_default = type(strategy).__name__ == "_DefaultDistributionStrategy"
        several = None if by_default or type(strategy) in alone else type(strategy).__name__
    elif backend == "jax":
        import jax

        several = "jax.distributed" if jax.process_count() > 1 else None
    else:
        import torch
        from keras.src.backend.torch.core import get_device

        if (device := get_device()) != "cpu" or model.jit_compile:
            raise UsageError(
                f"Keras on torch ({device}, jit_compile={model.jit_compile}): ResumeFit restores "
                "the random numbers of uncompiled models on a CPU only: count the position in a "
                "loop of your own, or train with KERAS_BACKEND=jax"
            )
        group = torch.distributed
        several = "torch.distributed" if group.is_available() and group.is_initialized() else None
    if several is None and (shared := keras.distribution.distribution()) is not None:
        several = type(shared).__name__  # not proven, of one process either
    if several is not None:
        raise UsageError(
            f"{several}: ResumeFit follows fit in one process; several would share this dataset "
            "by a rule of their own: count a position in a loop of your own"
        )


def check_dataset(dataset: Any, position: object) -> None:
    """Refuse what `fit` trains on if it reads something else than `position.dataset()`.

    Raises:
        UsageError: another dataset, or one that was shuffled, cut or batched once more.
    """
    found = calls_behind(getattr(dataset, "_original_dataset", dataset))  # of tf.distribute
    calls = [call for _, names in found for call in names if call not in _ONE_FOR_ONE]
    # Exactly one position, this one, and nothing behind it that changes elements.
    if calls or [of for of, _ in found] != [position]:
        raise UsageError(
            f"fit reads {choices(calls) or 'what'} that is not position.dataset(), "
            "or is behind it: give fit position.dataset(transform=..) of the position that "
            "ResumeFit has; behind it only map and prefetch, without deterministic=False, "
            "leave the batches what they are"
        )
