"""Python code that iterates a dataset, resumed: it runs on what the dataset has left."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shardctl.base.text import counted
from shardctl.base.tfds_rules import Loop
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.order import Order
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.inspect import inspected
from shardctl.tfds.inspecting.watch import Iterated, Iterators, Lines, Returned, of_script
from shardctl.tfds.training.edited_graph import NotRebuildable
from shardctl.tfds.training.own_elements import (
    OwnElements,
    element_after,
    num_examples_before,
    num_examples_of,
)

_INSIDE = "call ds = resume_like(ds, ..) in the function, before the dataset is iterated"
_END = object()


@dataclass(kw_only=True, eq=False)
class IteratingCode:
    """A generator or an iterator that a function returned, on top of the rest of its dataset.

    It may iterate one dataset several times: each is a pass of it, and passes that were consumed
    are empty.

    iterators: watched since the function was called.
    left: how many examples, or elements, are still to be skipped.
    pass_index: which pass of a dataset the first one is.
    """

    iterators: Iterators
    lines: Lines
    left: int
    counts_steps: bool
    pass_index: int
    loop: Loop
    _passes: list[Iterated] = field(init=False, default_factory=list)  # of what is made here

    def resumed(self, value: Any) -> Iterator[Any]:
        """Yield what the code has left.

        Raises:
            UsageError: it iterates no dataset, or several in turn; its end comes before the rest.
            UnpredictableOrderError: the order of the dataset is nondeterministic.
        """
        if isinstance(value, list | tuple | Mapping) or not hasattr(type(value), "__iter__"):
            raise UsageError(
                f"the function returned a {type(value).__name__}; a tf.data.Dataset is needed, or "
                "what iterates one, as lambda: make()[0]"
            )
        return self._elements(value)

    def _elements(self, value: Any) -> Iterator[Any]:
        self.iterators.begin = self._begin
        for early in self.iterators.made:
            if early.begun:
                early.refused = f"{early} takes elements before the function returns; {_INSIDE}"
        with self.iterators.watched():
            elements = of_script(iter, value)
        while True:
            # Its iterators are watched all the time, since a later pass is not that of a dataset
            # which was never iterated.
            with self.iterators.watched():
                element = of_script(next, elements, _END)
            if not self._passes:
                raise UsageError(f"the function returned what iterates no dataset here; {_INSIDE}")
            if element is _END:
                break
            yield element
        if self.left:
            kind = "steps" if self.counts_steps else "consumed"
            raise UsageError(f"{kind}: {self.left} more than what the function returned has")

    def _begin(self, iterated: Iterated) -> Any:
        """Return the dataset that an iterator reads in place of its own."""
        if self._passes and not self._passes[-1].ended:
            raise UsageError(
                f"{iterated} iterates a dataset before the iteration of {self._passes[-1]} has "
                f"ended; {_INSIDE}"
            )
        same = [one for one in self._passes if one.dataset is iterated.dataset]
        made = [one for one in self.iterators.made if one not in same]
        found = Returned(dataset=iterated.dataset, iterated=iterated).after(made)
        inspection = inspected(found, lines=self.lines, loop=self.loop)
        inspection.check_predictable()
        own = OwnElements.of(found.dataset, inspection, self.pass_index + len(same))
        start = self._skipped(own.elements)
        try:
            rest = own.made(start=start)
        except NotRebuildable as why:
            # Passes of this code that are over were read then; others cannot be read in it.
            if self.pass_index:
                raise UsageError(f"{why}; {_INSIDE}") from why
            rest = read_again(own, start, why, pass_index=0, loop=self.loop)
        if not self._passes:
            warnings.warn(
                f"{iterated} iterates the dataset in Python. This code starts anew on what is left "
                "of the dataset: what it keeps itself, as a counter or a buffer, is not resumed",
                stacklevel=2,
            )
        self._passes.append(iterated)
        return rest

    def _skipped(self, elements: Order) -> int:
        """Return how many elements of a pass are skipped, and count them."""
        if self.counts_steps:
            start = elements.steps_up_to(self.left)
            self.left -= start
            return start
        total = num_examples_of(elements)
        skipped = self.left if total is None else min(self.left, total)
        self.left -= skipped
        return element_after(elements, skipped)


def read_again(
    own: OwnElements, steps: int, why: NotRebuildable, *, pass_index: int, loop: Loop
) -> Any:
    """Return the rest of a pipeline that is read again from its start, with a warning of the cost.

    Raises:
        UnpredictableOrderError: what Keras read ahead in earlier epochs cannot be repeated.
    """
    # Keras reads ahead in earlier epochs, and how far depends on timing.
    if loop == "keras-fit" and pass_index:
        raise UnpredictableOrderError(
            f"{why}, so the pipeline has to be read again from its start, and what Keras read "
            "ahead in earlier epochs cannot be repeated"
        )
    elements = own.elements
    num_examples = num_examples_before(elements, steps)
    # Earlier passes are read whole, to bring the shuffles to the same state.
    num_examples += pass_index * (num_examples_of(elements) or 0)
    warnings.warn(
        f"{why}: the pipeline is read again from its start, {counted(num_examples, 'example')} "
        "that were yielded; iterate the rest once",
        stacklevel=4,
    )
    for _ in range(pass_index):
        for _ in own.dataset:
            pass
    rest = own.dataset.skip(steps)
    total = elements.num_steps
    # `skip` loses the length; it is known.
    if total is not None:
        rest = rest.apply(tensorflow().data.experimental.assert_cardinality(total - steps))
    return rest
