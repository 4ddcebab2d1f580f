"""Keras `fit`, stopped and resumed."""

from __future__ import annotations

import contextlib
import json
import os
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.hosts.host import HostLike
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings, refuse_loader
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.builder_layout import Builder
from shardctl.tfds.graphs.predicted import Elements
from shardctl.tfds.position.position import Position
from shardctl.tfds.training.pipeline import Transform, real_dataset
from shardctl.tfds.training.process_host import check_host
from shardctl.tfds.training.resume import dataset_to_resume


@checked
def keras_epochs(
    builder: Builder,
    spec: str | None = None,
    settings: ReadSettings | None = None,
    *,
    epochs: int,
    initial_epoch: int = 0,
    steps: int = 0,
    host: int | HostLike | None = None,
    transform: Transform | None = None,
    decoders: Any = None,
) -> Iterator[tuple[int, Any]]:
    """Return (epoch, `tf.data.Dataset`) for each epoch that `fit(epochs=epochs)` has left.

    `fit(initial_epoch=k)` does not resume: it begins a new pass over the dataset, and so trains on
    the order of epoch 0 again. And of a dataset whose length it knows it takes two iterators an
    epoch, so that an uninterrupted run trains on every other order. Each dataset here is one epoch
    of that run, in its order, however often Keras begins it:

        for epoch, dataset in keras_epochs(builder, "train", settings, epochs=9, initial_epoch=4):
            model.fit(dataset, initial_epoch=epoch, epochs=epoch + 1)

    The uninterrupted run is `model.fit(pipeline(builder, spec, settings), epochs=epochs)`, without
    steps_per_epoch. The first dataset leaves out `steps` batches of its epoch; after the last step
    it is the next epoch's. Settings with
    `epochs` above 1 repeat the dataset within each epoch of `fit`. `transform` should make the
    pairs (x, y) that Keras trains on; TFDS's `as_supervised` is such a one. `host` is that of
    `resume`.

    Source: keras/src/trainers/epoch_iterator.py, of Keras 3.

    Raises:
        UnpredictableOrderError: TensorFlow leaves the order open; so it does with `settings.epochs`
            above 1 and no partial last batch, where what Keras reads ahead depends on timing.
        UsageError: no such epoch or step, no batch size, a pass index in the settings, which the
            epochs of `fit` count, settings for another host, or a global seed in force as for
            `resume`. One that is set after this call, for a model's weights, changes nothing.
    """
    if settings is not None:
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

    def each() -> Iterator[tuple[int, Any]]:
        how = {"transform": transform, "decoders": decoders}
        real = cache(partial(real_dataset, builder, spec, position.settings, **how))
        for epoch in range(initial_epoch, epochs):
            fit.begin(epoch)
            if epoch == initial_epoch:
                position.advance(Elements(position.planned.order).num_examples_before(steps))
            plan = position.plan()
            yield (
                epoch,
                dataset_to_resume(builder, plan, host, checks_seed=False, real=real, **how),
            )

    return each()


_NO_BATCHES = "fit trains on batches: give ReadSettings(batch=N), or a stage batch(N)"


# Where a position is while `fit` trains: which step of which epoch, and what they read.


@dataclass(frozen=True, kw_only=True)
class FitPlace:
    """How far a `fit` has come: `steps` batches of `epoch`.

    is_over: no batch of the epoch is left, and all callbacks know it.
    steps_per_epoch: that of `fit`, None where an epoch is as long as the dataset.
    """

    epoch: int
    steps: int
    is_over: bool
    steps_per_epoch: int | None

    @property
    def next_epoch(self) -> int:
        """The epoch with which `fit` goes on."""
        return self.epoch + self.is_over

    def with_position(self, position: Position) -> bytes:
        """Return it and the state of a position as JSON."""
        state = json.loads(position.get_state())
        return json.dumps({"fit": vars(self), "position": state}).encode("ascii")


def place_and_position(state: bytes) -> tuple[FitPlace, bytes]:
    """Return what `with_position` wrote, and the state of the position in it.

    Raises:
        DatasetError: something else.
    """
    try:
        document = json.loads(state)
        return FitPlace(**document["fit"]), json.dumps(document["position"]).encode("ascii")
    except (ValueError, TypeError, KeyError) as error:
        raise DatasetError(f"the weights hold a position that cannot be read: {error}") from error


class FitEpochs:
    """The epochs of one `fit`, each a part of the order of a position, which is moved along.

    Without `steps_per_epoch` epoch e is pass e over the pipeline as `fit` makes them; with it the
    one order of the position is cut into epochs.

    Raises:
        UsageError: no batches, a position of a pass of its own, or an order that ends before
            `fit` does.
        UnpredictableOrderError: TensorFlow leaves the order of later epochs open.
    """

    def __init__(self, position: Position, num_epochs: int, steps_per_epoch: int | None) -> None:
        self._position, self._size = position, steps_per_epoch
        self._start = position.planned.with_settings(position.settings)
        settings = position.settings
        if position.is_shared:
            raise UsageError(
                "the run was shared among other hosts, whose part has no epochs of fit: train on "
                "position.dataset() in a loop of your own"
            )
        if not self._start.order.has_steps:
            raise UsageError(_NO_BATCHES)
        if settings.pass_index:
            raise UsageError(
                phrase(
                    "{pass_index!}: the epochs of fit count the passes",
                    pass_index=settings.pass_index,
                )
            )
        self._elements = Elements(self._start.order)
        if steps_per_epoch is None:
            if not self._elements.num_elements:
                raise UsageError(
                    "fit has no end of an epoch without steps_per_epoch, for the order has "
                    f"{'none' if self._elements.num_elements is None else 'no batches'}"
                )
            last = replace(position.settings, pass_index=max(num_epochs - 1, 0), loop="keras-fit")
            # What is left open is refused now, and not when that epoch begins.
            Elements(self._start.with_settings(last).order).examples(0, 1)
        elif settings.loop == "keras-fit":
            raise UsageError(
                phrase(
                    "{loop=keras-fit} is fit without steps_per_epoch; with it one iterator runs "
                    "through the epochs: leave {loop} out"
                )
            )
        elif self._elements.up_to(num_epochs * steps_per_epoch) < num_epochs * steps_per_epoch:
            total = self._elements.num_elements or 0
            raise UsageError(
                f"epochs={num_epochs} of steps_per_epoch={steps_per_epoch} are "
                f"{num_epochs * steps_per_epoch} batches, and the order has {total}: "
                "give ReadSettings(epochs=..) that are enough for all, or fewer steps"
            )
        self.epoch = self.steps = self.num_steps = 0

    @property
    def length(self) -> int:
        """Number of batches of the first epoch."""
        return self._size or self._elements.num_elements or 0

    @property
    def num_left(self) -> int:
        """Number of batches that the epoch has left."""
        return self.num_steps - self.steps

    def place(self, *, is_over: bool) -> FitPlace:
        """Return where the position is."""
        return FitPlace(
            epoch=self.epoch, steps=self.steps, is_over=is_over, steps_per_epoch=self._size
        )

    def start(self, epoch: int) -> None:
        """Go to the start of the first epoch, or stay where the position is in the midst of it.

        Raises:
            UsageError: the position is elsewhere, so that `fit` would leave out or repeat what it
                has handed out.
        """
        position = self._position
        of_fit, consumed = position.epoch_of_fit, position.consumed
        if self._size is not None:
            begins = of_fit is None and consumed == self._before(epoch)
        elif of_fit == epoch and 0 < consumed < position.num_examples:
            self.epoch = epoch
            self._follow()
            self.steps = self._elements.element_after(consumed)
            return
        else:
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
        self._position.set_state(state)
        self.epoch, self.steps = place.epoch, place.steps
        self._follow()
        at = self._elements.num_examples_before(self._first + place.steps)
        epoch = None if self._size is not None else place.epoch
        if (self._position.consumed, self._position.epoch_of_fit) != (at, epoch):
            raise DatasetError(
                f"step {place.steps} of epoch {place.epoch} is not {self._position!r}"
            )

    def trained(self) -> None:
        """Count a batch that the model was trained on."""
        self._position.advance(self._elements.width_of(self._first + self.steps))
        self.steps += 1

    @property
    def _first(self) -> int:
        """The element with which the epoch begins, of those in which steps are counted."""
        return self.epoch * (self._size or 0)

    def _follow(self) -> None:
        if self._size is None:
            self._elements = Elements(self._position.planned.order)
        self.num_steps = self._size or self._elements.num_elements or 0

    def _before(self, epoch: int) -> int:
        return self._elements.num_examples_before(epoch * (self._size or 0))


# A place in `fit` inside the weights file of a Keras model, and files that are written whole.

_ATTRIBUTE = "_shardctl_place"
_ENTRY, _RANDOM = "place", "random"
_ENDING = ".weights.h5"
_METADATA = "training_metadata.json"


class PlaceInWeights:
    """What a model saves and loads besides its weights, in the same file: a place, as bytes.

    Weights and place are then of the same moment, whichever file is loaded. So are the states of
    random numbers, of dropout for one, which Keras leaves out. `found` says whether weights were
    loaded, `loaded` what place they had.
    """

    def __init__(self, place: Callable[[], bytes | None]) -> None:
        self.place = place
        self.found = False
        self.loaded: bytes | None = None

    def put_into(self, model: Any) -> None:
        """Let a model save and load it."""
        setattr(model, _ATTRIBUTE, _saveable_class()(self, model))

    def take_out_of(self, model: Any) -> None:
        """Let a model be as it was."""
        if hasattr(model, _ATTRIBUTE):
            delattr(model, _ATTRIBUTE)


@cache
def _saveable_class() -> Any:
    # What saving_lib saves of the attributes of a model; Keras exports no public name of it.
    from keras.src.saving.keras_saveable import KerasSaveable

    class Saveable(KerasSaveable):  # type: ignore[misc]
        def __init__(self, of: PlaceInWeights, model: Any) -> None:
            self._of, self._model = of, weakref.ref(model)

        def _obj_type(self) -> str:
            return "Loss"  # saving_lib knows a few kinds; one without variables of its own

        def save_own_variables(self, store: Any) -> None:
            place = self._of.place()
            if place is not None:
                store[_ENTRY] = np.frombuffer(place, np.uint8)
            for index, state in enumerate(_random_states(self._model())):
                store[f"{_RANDOM}{index}"] = state.numpy()

        def load_own_variables(self, store: Any) -> None:
            self._of.found = True
            has_one = _ENTRY in list(store.keys())
            self._of.loaded = bytes(np.asarray(store[_ENTRY], np.uint8)) if has_one else None
            if has_one:
                for index, state in enumerate(_random_states(self._model())):
                    state.assign(np.asarray(store[f"{_RANDOM}{index}"]))

    return Saveable


def _random_states(model: Any) -> list[Any]:
    """Return the variables of random numbers that the layers of a model draw from."""
    others = {id(variable) for variable in (*model.weights, *model.metrics_variables)}
    return [variable for variable in model.variables if id(variable) not in others]


def save_weights_whole(model: Any) -> None:
    """Let a model write its weights files beside their place first, and then move them there.

    Keras writes over the file that is there, so that one who is killed has none. A place that is no
    local path is left to Keras.
    """
    if getattr(model.save_weights, "_is_whole", False):
        return
    save = model.save_weights

    def save_whole(filepath: Any, overwrite: bool = True, **options: Any) -> Any:
        path = os.fspath(filepath)
        asks_first = not overwrite and os.path.exists(path)
        if "://" in path or not path.endswith(_ENDING) or options or asks_first:
            return save(filepath, overwrite=overwrite, **options)
        new = f"{path.removesuffix(_ENDING)}.new{_ENDING}"
        save(new, overwrite=True)
        os.replace(new, path)
        return None

    save_whole._is_whole = True  # type: ignore[attr-defined]
    model.save_weights = save_whole


def drop_torn_metadata(folder: str) -> None:
    """Delete a `training_metadata.json` that was not written to its end, without which Keras fails.

    It says which epoch comes next, which the weights file does too.
    """
    file = Path(folder, _METADATA)
    with contextlib.suppress(OSError):
        try:
            json.loads(file.read_text("utf-8"))["epoch"]
        except (ValueError, KeyError, TypeError):
            file.unlink()
