"""Python code that iterates a dataset, resumed: replayed on zeros, then run on what is left."""

from __future__ import annotations

import itertools
import pickle
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shardctl.base.text import counted
from shardctl.base.tfds_rules import Loop
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.inspecting.inspect import inspected
from shardctl.tfds.inspecting.watch import (
    Iterated,
    Iterators,
    Lines,
    Returned,
    filled,
    of_script,
    reseeds_once,
)
from shardctl.tfds.training.edited_graph import NotRebuildable
from shardctl.tfds.training.own_elements import (
    OwnElements,
    num_examples_before,
    num_examples_of,
    width_of,
)

_INSIDE = "call ds = resume_like(ds, ..) in the function, before the dataset is iterated"
_BY_VALUE = (
    "the Python code that the function returned takes elements by what they hold, so that how many "
    f"it took is not known: {_INSIDE}"
)
_MOST_SECONDS = 3.0
_MORE_YIELDS = 8  # that are compared, besides what is read ahead
# With which elements are filled in turn: what code asks of them is seldom true of all of these.
_VALUES = (1, 0, 3, -1, 2, 10**9, 7, 100, 5, 4, 8, 6, 9)
_END = object()


@dataclass(kw_only=True, eq=False)
class IteratingCode:
    """A function that returns a generator or an iterator over datasets, to be resumed.

    Its Python code runs up to where it was interrupted, on elements of zeros, and then on what
    the datasets have left. So its counters are right, and an epoch that it cuts ends where it
    would. This holds where values do not decide what it takes, and what it yields later depends
    on none of the zeros: two runs on other elements are compared before.

    left: how many examples, or elements, it yielded.
    pass_index: which pass of a dataset the first one is.
    """

    make: Callable[[], Any]
    lines: Lines
    left: int
    counts_steps: bool
    pass_index: int
    loop: Loop
    passes: list[OwnElements] = field(init=False, default_factory=list)
    _inspections: dict[int, Any] = field(init=False, default_factory=dict)

    def resumed(self, value: Any, iterators: Iterators, reset: Callable[[], None]) -> Iterator[Any]:
        """Return what the code has left.

        value, iterators: what the first call returned, and was watched by.
        reset: sets the generators of random numbers back to where they were before it.

        Raises:
            UsageError: it iterates no dataset; it ends before the rest; what it takes depends on
                values, or what it yields on elements before.
            UnpredictableOrderError: the order of a dataset is nondeterministic.
        """
        run = _Run(code=self, value=value, iterators=iterators)
        if not self.left:
            run.is_real = True
            return run.elements()
        steps = run.follow()
        starts = self._starts(run, steps, reset)
        warnings.warn(
            f"{run.begun[0]} iterates the dataset in Python. This code ran on elements of zeros up "
            "to where it was interrupted; that no value decides what it takes is assumed",
            stacklevel=4,
        )
        reset()
        real = self._called(starts, run)
        real.is_real = True
        elements = real.elements()
        for _ in itertools.islice(elements, steps):
            pass
        return elements

    def _called(self, starts: Counter[int], like: _Run) -> _Run:
        iterators = Iterators()
        with self.lines.watched(), iterators.watched():
            value = self.make()
        return _Run(code=self, value=value, iterators=iterators, starts=starts, like=like)

    def _starts(self, first: _Run, steps: int, reset: Callable[[], None]) -> Counter[int]:
        """Return of how many elements of each pass no later yield depends."""
        ahead = first.most_taken(steps)
        for kept in dict.fromkeys((0, ahead)):
            taken = max(0, first.yields[steps - 1] - kept)
            starts = Counter(first.taken[:taken])
            reset()
            other = self._called(starts, first)
            other.follow(steps)
            if other.later == first.later:
                break
        else:
            raise UsageError(
                "the Python code that the function returned keeps elements, or yields what cannot "
                f"be compared, so that it cannot be resumed as it was: {_INSIDE}"
            )
        if not self.counts_steps and first.yields[0] > 1 and not kept:
            raise UsageError(_UNCOUNTED.format(self.left))  # it skips what it takes first
        try:
            for number in {*first.taken[taken:], len(first.begun) - 1}:
                self.passes[number].made(start=starts[number])
        except NotRebuildable as why:
            if self.pass_index:
                raise UsageError(f"{why}; {_INSIDE}") from why
            warnings.warn(
                f"{why}: the pipeline is read again from its start; iterate the rest once",
                stacklevel=5,
            )
            return Counter()
        return starts

    def begin(self, run: _Run, iterated: Iterated) -> None:
        """Note an iterator that yields its first element."""
        same = [one for one in run.begun if one.dataset is iterated.dataset]
        run.begun.append(iterated)
        if len(run.begun) <= len(self.passes):  # as in a run before
            return
        made = [one for one in run.iterators.made if one not in same]
        found = Returned(dataset=iterated.dataset, iterated=iterated).after(made)
        inspection = self._inspections.get(id(iterated.dataset))
        if inspection is None or found.before:
            inspection = inspected(found, lines=self.lines, loop=self.loop)
            inspection.check_predictable()
        if not all(one.ended for one in same) and not reseeds_once(iterated.dataset):
            raise UsageError(
                f"{iterated} iterates a dataset before the iteration of {same[-1]} has ended, and "
                f"how many seeds its shuffles have drawn is not known; {_INSIDE}"
            )
        self._inspections[id(iterated.dataset)] = inspection
        index = self.pass_index + len(same)
        self.passes.append(OwnElements.of(iterated.dataset, inspection, index))


_UNCOUNTED = (
    "consumed={}: the Python code that the function returned does not yield one element for each "
    "that it takes, so that its examples cannot be counted; give steps=N, the elements it yielded"
)


@dataclass(kw_only=True, eq=False)
class _Run:
    """A call of the function, and what its Python code takes and yields.

    starts: how many elements of each pass are zeros in the real run, other values before it.
    like: a run that this one has to equal.
    taken: of each element the number of its pass.
    yields: how many elements were taken before each yield.
    later: what it yields where it resumes.
    """

    code: IteratingCode
    value: Any
    iterators: Iterators
    starts: Counter[int] = field(default_factory=Counter)
    like: _Run | None = None
    is_real: bool = False
    begun: list[Iterated] = field(init=False, default_factory=list)
    taken: list[int] = field(init=False, default_factory=list)
    yields: list[int] = field(init=False, default_factory=list)
    later: list[Any] = field(init=False, default_factory=list)
    ended: bool = field(init=False, default=False)
    _until: float = field(init=False, default=0)
    _counts: Counter[int] = field(init=False, default_factory=Counter)
    _lengths: Counter[int] = field(init=False, default_factory=Counter)
    _filled: dict[Any, Any] = field(init=False, default_factory=dict)
    _whole: set[int] = field(init=False, default_factory=set)

    def follow(self, steps: int | None = None) -> int:
        """Run it some way past where it resumes; return after how many yields that is."""
        left = self.code.left
        self._until = time.thread_time() + _MOST_SECONDS
        try:
            for element in self.elements():
                width = 1
                if not self.code.counts_steps and self.like is None:
                    width = self._width()
                if steps is None:
                    if width > left:
                        raise UsageError(
                            f"consumed={self.code.left} is in the middle of an element, whose "
                            f"examples end after {self.code.left - left + width}"
                        )
                    left -= width
                    steps = None if left else len(self.yields)
                elif len(self.yields) > steps:
                    self.later.append(_pickled(element))
                    more = self.most_taken(steps) + _MORE_YIELDS
                    if len(self.yields) > steps + more:
                        break
        except ShardctlError:
            raise
        except Exception as error:  # of any kind, since it is the script's
            raise UsageError(
                f"the Python code that the function returned fails on elements of zeros and the "
                f"like, {type(error).__name__}: {error}; {_INSIDE}"
            ) from error
        if steps is None:
            kind = "steps" if self.code.counts_steps else "consumed"
            raise UsageError(
                f"{kind}: {left} more than what the function returned has, on elements of zeros"
            )
        return steps

    def most_taken(self, steps: int) -> int:
        """Return how many elements it takes at most for one of so many yields."""
        return max(b - a for a, b in itertools.pairwise((0, *self.yields[:steps])))

    def elements(self) -> Iterator[Any]:
        """Yield what it yields."""
        value, iterators = self.value, self.iterators
        if isinstance(value, list | tuple | Mapping) or not hasattr(type(value), "__iter__"):
            raise UsageError(
                f"the function returned a {type(value).__name__}; a tf.data.Dataset is needed, or "
                "what iterates one, as lambda: make()[0]"
            )
        iterators.begin, iterators.element_of = self._begin, self._element
        for early in iterators.made:
            if early.begun:
                early.refused = f"{early} takes elements before the function returns; {_INSIDE}"
        with iterators.watched():
            elements = of_script(iter, value)
        while True:
            # Its iterators are watched all the time, since a later pass is not that of a dataset
            # which was never iterated.
            with iterators.watched():
                element = of_script(next, elements, _END)
            if not self.begun:
                raise UsageError(f"the function returned what iterates no dataset here; {_INSIDE}")
            self._check(None if element is _END else -1)
            if element is _END:
                self.ended = True
                return
            self.yields.append(len(self.taken))
            yield element

    def _check(self, number: int | None) -> None:
        """Refuse what the other run did not do: it took from a pass, yielded (-1) or ended."""
        if self._until and time.thread_time() > self._until:
            raise UsageError(
                "the Python code that the function returned takes more than "
                f"{_MOST_SECONDS:g} s to get to where it was interrupted: {_INSIDE}"
            )
        like, place, count = self.like, len(self.taken), len(self.yields)
        if like is None:
            return
        if number is None:
            same = len(like.yields) == count or (not like.ended and count > len(like.yields))
        elif number == -1:
            same = like.yields[count] == place if count < len(like.yields) else not like.ended
        else:
            same = like.taken[place] == number if place < len(like.taken) else not like.ended
        if not same:
            raise UsageError(_BY_VALUE)

    def _element(self, iterated: Iterated, following: Callable[[], Any]) -> Any:
        """Return the next element of an iterator, read only where the run is real."""
        if iterated not in self.begun:
            self.code.begin(self, iterated)
        number, index = self.begun.index(iterated), iterated.taken
        is_early = index < self.starts[number]
        if self.is_real and not is_early:
            found = following()
        else:
            found = self._blank(number, index, varied=is_early and not self.is_real)
        self._check(number)
        self.taken.append(number)
        return found

    def _blank(self, number: int, index: int, *, varied: bool) -> Any:
        own, value = self.code.passes[number], 0
        if index >= self._lengths[number]:
            self._lengths[number] = own.elements.steps_up_to(2 * index + 16)
            if index >= self._lengths[number]:
                raise tensorflow().errors.OutOfRangeError(None, None, "")
        if varied:
            value = _VALUES[len(self.taken) % len(_VALUES)]
        key = number, value, width_of(own.elements, index), 1 + varied
        if key not in self._filled:
            self._filled[key] = filled(own.dataset, *key[1:])
        if self._filled[key] is None:
            raise UsageError(f"elements of zeros cannot be made of this dataset; {_INSIDE}")
        return self._filled[key]

    def _width(self) -> int:
        """Return how many examples the latest yield holds: those of one element."""
        *before, now = (0, *self.yields[-2:])[-2:]
        latest, ahead, count = self.taken[before[0] : now], self.yields[0], len(self.yields)
        if ahead == 1:
            # An epoch that is cut takes an element more, before the next one begins.
            fits = bool(latest) and latest == sorted(set(latest))
            number = latest[-1] if fits else 0
        else:
            fits = (count == 1 or len(latest) <= 1) and count <= len(self.taken)
            number = self.taken[count - 1] if fits else 0
        if not fits or any(self._counts[later] for later in range(number + 1, len(self.begun))):
            raise UsageError(_UNCOUNTED.format(self.code.left))
        self._counts[number] += 1
        return width_of(self.code.passes[number].elements, self._counts[number] - 1)

    def _begin(self, iterated: Iterated) -> Any:
        """Return the dataset that an iterator reads in place of its own."""
        if iterated not in self.begun:
            self.code.begin(self, iterated)
        number = self.begun.index(iterated)
        if not self.is_real or iterated.taken < self.starts[number]:
            raise UsageError(f"{iterated} is read otherwise than by next(); {_INSIDE}")
        own = self.code.passes[number]
        try:
            return own.made(start=self.starts[number])
        except NotRebuildable as why:
            # A later pass is that of a dataset whose earlier ones were read.
            same = [each for each in self.begun[:number] if each.dataset is iterated.dataset]
            is_whole = not self.code.pass_index and set(map(id, same)) <= self._whole
            if not is_whole:
                raise UsageError(f"{why}; {_INSIDE}") from why
            self._whole.add(id(iterated))
            return iterated.dataset


def _pickled(element: Any) -> Any:
    try:
        return pickle.dumps(element)
    except Exception:  # of any kind: equal to nothing
        return object()


def random_states() -> Callable[[], None]:
    """Return a function that sets generators of random numbers back to where they are now."""
    import numpy as np
    from tensorflow.python.eager import context  # no public name

    # What ops without a seed draw theirs from, where there is a global one.
    of_tf = getattr(context.context(), "_rng", None)
    states = random.getstate(), np.random.get_state(), of_tf and of_tf.getstate()

    def reset() -> None:
        random.setstate(states[0])
        np.random.set_state(states[1])
        if of_tf:
            of_tf.setstate(states[2])

    return reset


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
