"""Where a position is while `fit` trains: which step of which epoch, and what they read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from shardctl.core.phrase import phrase
from shardctl.core.settings.short_form import short_form
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.graphs.predicted import Elements, elements_of
from shardctl.tfds.position.position import Position


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
        fit: Mapping[str, Any] = document["fit"]
        position = json.dumps(document["position"]).encode("ascii")
        return FitPlace(**fit), position
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
        settings = short_form(position.settings)
        if position.is_shared:
            raise UsageError(
                "the run was shared among other hosts, whose part has no epochs of fit: train on "
                "position.dataset() in a loop of your own"
            )
        if settings.batch is None and settings.stages is None:
            raise UsageError("fit trains on batches: give ReadSettings(batch=N)")
        if settings.pass_index:
            raise UsageError(
                phrase(
                    "{pass_index!}: the epochs of fit count the passes",
                    pass_index=settings.pass_index,
                )
            )
        self._elements: Elements = elements_of(self._start.order)
        if steps_per_epoch is None:
            if not self._elements.num_elements:
                raise UsageError(
                    "fit has no end of an epoch without steps_per_epoch, for the order has "
                    f"{'none' if self._elements.num_elements is None else 'no batches'}"
                )
            last = replace(position.settings, pass_index=max(num_epochs - 1, 0), loop="keras-fit")
            # What is left open is refused now, and not when that epoch begins.
            elements_of(self._start.with_settings(last).order).examples(0, 1)
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
        if self._size is None and of_fit == epoch and 0 < consumed < position.num_examples:
            self.epoch = epoch
            self._follow()
            self.steps = self._elements.element_after(consumed)
            return
        if self._size is None:
            begins = of_fit == epoch and consumed == 0
            begins |= of_fit == epoch - 1 and consumed == position.num_examples
        else:
            begins = of_fit is None and consumed == self._before(epoch)
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
        before = 0 if self._size is None else place.epoch * self._size
        at = self._elements.num_examples_before(before + place.steps)
        if self._position.consumed != at or self._is_of_another_epoch(place):
            raise DatasetError(
                f"step {place.steps} of epoch {place.epoch} is not {self._position!r}"
            )

    def trained(self) -> None:
        """Count a batch that the model was trained on."""
        before = 0 if self._size is None else self.epoch * self._size
        self._position.advance(self._elements.width_of(before + self.steps))
        self.steps += 1

    def _follow(self) -> None:
        if self._size is None:
            self._elements = elements_of(self._position.planned.order)
        self.num_steps = self._size or self._elements.num_elements or 0

    def _before(self, epoch: int) -> int:
        assert self._size is not None
        return self._elements.num_examples_before(epoch * self._size)

    def _is_of_another_epoch(self, place: FitPlace) -> bool:
        epoch = None if self._size is not None else place.epoch
        return self._position.epoch_of_fit != epoch
