"""A loop that a position counts: what it was handed, and what it has trained on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any

from shardctl.core.arguments.kinds import Kind
from shardctl.core.arguments.values import whole_number
from shardctl.core.order.order import Order
from shardctl.errors import UsageError
from shardctl.tfds.graphs.predicted import Elements
from shardctl.tfds.imports import tensorflow

_NEEDED = (
    "a tf.Variable that goes up by one a batch is needed, or a function that returns a number, as "
    "lambda: state.step"
)

_SEVERAL = (
    "each replica is handed an element of its own: make batches that are for all of them, and part "
    "those, strategy.experimental_distribute_dataset(position.dataset())"
)


def _steps_of(value: Any) -> Callable[[], int]:
    """Return a function that says how many steps are trained by now."""
    if callable(value) and not hasattr(type(value), "__int__"):  # as a variable of Flax has too
        return lambda: whole_number(value())
    whole_number(value)
    if not _may_change(value):
        raise UsageError(_NEEDED)
    return lambda: whole_number(value)


def _may_change(number: Any) -> bool:
    """Return whether a number may be another later: a variable, an array, not an int or a tensor.

    >>> _may_change(7)
    False
    """
    kind = type(number)
    if kind.__module__.partition(".")[0] in ("jax", "jaxlib"):
        return False  # where `__setitem__` says so
    return hasattr(kind, "assign") or hasattr(kind, "__setitem__")


Steps = Annotated[Any, Kind(take=_steps_of, needed=_NEEDED, several="tf.Variables")]


class Loop:
    """A loop over elements: how many examples it was handed, and how many it has trained on.

    consumed: the examples that it was handed, counted from the start of the order.

    Without `steps` a batch that is handed out counts as trained on. With it a batch does when the
    step has gone up, so that a state which is taken before, or after an error, is that before the
    batch.
    """

    def __init__(self, consumed: int, steps: Callable[[], int] | None) -> None:
        self.consumed = self._before = consumed
        self._steps = steps
        self._step = 0 if steps is None else steps()
        self._in_hand = False
        if self._step and not consumed:
            warnings.warn(
                f"the position is at its beginning, and step is {self._step}: a checkpoint without "
                "the position was restored, or these are other data than those of the steps before",
                stacklevel=4,
            )

    def ask(self) -> None:
        """Note that the next element is asked for, so that the one before is trained on.

        Raises:
            UsageError: it is not.
        """
        if self._in_hand and self._steps is not None:
            now = self._steps()
            if now != self._step + 1:
                raise UsageError(
                    f"step was {self._step} when a batch was handed out, and is {now} when the "
                    "next is asked for: it must have gone up by one; count what the loop itself "
                    "receives, not what reads ahead of it"
                )
            # In this order, here and below: a handler of signals takes a state between any two.
            self._in_hand = False
            self._step = now
        self._in_hand = False

    def hand_out(self, consumed: int) -> None:
        """Note that one more element is handed out, which ends after so many examples."""
        self._before = self.consumed
        self._in_hand = True
        self.consumed = consumed

    def trained(self) -> int:
        """Return how many examples were trained on, counted from the start of the order.

        Raises:
            UsageError: step says neither that the last batch was nor that it was not.
        """
        if self._steps is None or not self._in_hand:
            return self.consumed
        now = self._steps()
        if now not in (self._step, self._step + 1):
            raise UsageError(
                f"step was {self._step} when a batch was handed out, and is {now} now: it must go "
                "up by one for each batch, or nobody knows which were trained on"
            )
        return self._before if now == self._step else self.consumed


class RowCounter:
    """Examples of elements, each one or a batch, by the rows of its first component.

    `first` is how many examples come before the first whole epoch.
    """

    def __init__(self, order: Order, loop: Loop, batch: int | None, first: int) -> None:
        self._order, self._loop, self._batch, self._first = order, loop, batch, first
        self._is_partial = False

    def __call__(self, element: Any) -> int:
        """Return how many examples the next element holds.

        Raises:
            UsageError: more than a batch, or it comes after less than one in mid-epoch.
        """
        if self._batch is None:
            if len(_parts(element)) > 1:
                raise UsageError(_SEVERAL)
            return 1
        rows = _num_rows(element)
        if rows > self._batch:
            raise UsageError(
                f"a batch of {rows} examples where batches of {self._batch} are counted"
            )
        if self._is_partial:
            raise UsageError(
                f"a batch of less than {self._batch} examples is followed by another in mid-epoch: "
                f"are these batches of {self._batch}?"
            )
        self._is_partial = rows < self._batch and not self._ends_epoch(self._loop.consumed + rows)
        return rows

    def _ends_epoch(self, consumed: int) -> bool:
        if self._order.sources:
            return True  # perhaps, of one of its sources
        behind = consumed - self._first
        return behind >= 0 and behind % max(self._order.epoch_size, 1) == 0


class OrderCounter:
    """Examples of the elements that stages hand out, as the order says."""

    def __init__(self, order: Order, loop: Loop, batch: int | None, first: int) -> None:
        self._elements = Elements(order)
        self._next = self._elements.element_after(loop.consumed)

    def __call__(self, element: Any) -> int:
        """Return how many examples the next element holds; one more than there are if none."""
        step, self._next = self._next, self._next + 1
        if self._elements.up_to(step + 1) == step:
            return 1
        width = self._elements.width_of(step)
        if len(_parts(element)) > 1 and _num_rows(element) != width:
            raise UsageError(_SEVERAL)
        return width


def elements_left(order: Order, consumed: int, batch: int | None) -> int | None:
    """Return how many elements are left at most behind so many examples, None if nobody knows.

    `batch` is that of batches which are made behind the order, perhaps each epoch for itself.
    """
    rest = order.num_examples - consumed
    if order.num_steps is None or (batch is not None and order.sources):
        return None
    if batch is None:
        return order.num_steps - int(order.steps_of([consumed])[0][0]) if rest else 0
    parts = -(-rest // max(order.epoch_size, 1)) if order.epoch_size % batch else 0
    return -(-rest // batch) + parts


def _num_rows(batch: Any) -> int:
    shapes = [tuple(getattr(part, "shape", ())) for part in _parts(batch)]
    if not all(shapes):
        raise UsageError("elements: batches are counted, and one of them has no rows")
    return sum(int(shape[0]) for shape in shapes)


def _parts(element: Any) -> tuple[Any, ...]:
    """Return the first component of an element, in as many parts as `tf.distribute` made of it."""
    tf = tensorflow()
    first = (*tf.nest.flatten(element), None)[0]
    return first.values if isinstance(first, tf.distribute.DistributedValues) else (first,)
