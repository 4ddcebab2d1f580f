"""A `tf.data.Dataset` whose iterators each begin where the position is at that moment."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, TypeVar

from shardctl.errors import MissingDependencyError, UsageError
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.training.own_elements import end_iterators_at_exit

_MARK = "_shardctl_position"
_PLACE = "_shardctl_place"
_NUM_KEPT = 8  # datasets made within a graph, whose iterators may still run


def deferred(position: object, rest: Callable[[], Any], place: Callable[[], Hashable]) -> Any:
    """Return a `tf.data.Dataset` each iterator of which reads what `rest` returns when it begins.

    `place` says where the position is, so that what is made here serves the first iterator too. A
    loop iterates the dataset that `rest` returns. What tf.data makes of it, by `map` or for
    devices, calls `rest` from within its graph, and so cannot be sent to another machine.
    TensorFlow does not know how many elements there are, which depends on when they are counted;
    `len` says how many are left now.
    """
    end_iterators_at_exit()
    return _kind()(position, rest, place)


def position_of(dataset: Any) -> object | None:
    """Return the position that `deferred` made a dataset of, None where it made none."""
    return getattr(dataset, _MARK, None)


def place_of(elements: Any) -> Hashable | None:
    """Return where an iterator of tf.data continues, None where that is unknown."""
    return getattr(_iterator(elements), _PLACE, None)


def keep_place(elements: Any, place: Hashable) -> None:
    """Note where elements continue, if they are an iterator of tf.data."""
    iterator = _iterator(elements)
    if isinstance(iterator, tensorflow().data.Iterator):
        setattr(iterator, _PLACE, place)


def _iterator(elements: Any) -> Any:
    return getattr(elements, "_iterator", elements)  # of that of `as_numpy_iterator`


class _Rest:
    """What is left, made at most once a place unless it is read."""

    def __init__(self, rest: Callable[[], Any], place: Callable[[], Hashable]) -> None:
        self._rest, self.place = rest, place
        self._made: list[tuple[Hashable, Any]] = []

    def here(self) -> Any:
        """Return the dataset for the place of now, to look at."""
        made = self.to_read()
        # `here` keeps what it made, and `to_read` gives it away at most once: two iterators of one
        # dataset object could share state, such as the generator of a shuffle.
        self._made = [(self.place(), made)]
        return made

    def to_read(self) -> Any:
        """Return the dataset for the place of now, which nothing else reads."""
        made, self._made = self._made, []
        if made and made[0][0] == self.place():
            return made[0][1]
        return self._rest()


@cache
def _kind() -> Any:
    tf: Any = tensorflow()
    any_dataset: Any = tf.data.Dataset
    to_variant = tf.data.experimental.to_variant
    from_variant = tf.data.experimental.from_variant

    class PositionDataset(any_dataset):  # type: ignore[misc]
        """What is left at a position, of each iterator from where the position is then."""

        def __init__(
            self, position: object, rest: Callable[[], Any], place: Callable[[], Hashable]
        ) -> None:
            self._rest = _Rest(rest, place)
            # The element spec must be known now, so one dataset is made; the first iterator uses
            # it.
            first = self._rest.here()
            spec = self._spec = first.element_spec
            # An iterator within a graph keeps no Python object alive, which a dataset may need.
            kept: deque[Any] = deque(maxlen=_NUM_KEPT)

            def made() -> Any:
                kept.append(self._rest.to_read())
                return to_variant(kept[-1])

            def within_graph(_: Any) -> Any:
                # The graph holds a call into Python: the dataset is made when an iterator runs, not
                # when the graph is traced.
                variant = tf.py_function(made, [], tf.variant)
                # `py_function` loses the shape, which is that of a scalar variant.
                variant.set_shape([])
                return from_variant(variant, spec)

            # A dataset of one element whose `flat_map` is the dataset to read: tf.data evaluates it
            # anew for each iterator.
            one = tf.data.Dataset.from_tensors(0).flat_map(without_autograph(within_graph))
            self._within_graph = one.with_options(first.options())
            setattr(self, _MARK, position)
            # What tf.data derives (`map`, `batch`, ..) sees this variant and thereby the late call.
            super().__init__(to_variant(self._within_graph))

        def __iter__(self) -> Any:
            # In eager mode the dataset itself is iterated: the exact one, without the detour
            # through the graph.
            if not tf.executing_eagerly():
                return super().__iter__()
            dataset = self._rest.to_read()
            setattr(dataset, _MARK, getattr(self, _MARK))
            iterator = iter(dataset)
            # Where this iterator continues; `count` compares it with the position.
            setattr(iterator, _PLACE, self._rest.place())
            return iterator

        def __len__(self) -> int:
            return len(self._rest.here())

        def _inputs(self) -> list[Any]:
            # For what walks over datasets, as `calls_behind` does.
            return [self._within_graph]

        @property
        def element_spec(self) -> Any:
            return self._spec

    return PositionDataset


# Positions as TensorFlow's checkpoints take them: saved and restored together with the weights.

Class = TypeVar("Class", bound=type)


def trackable_class(of: Class) -> Class:
    """Return a class of positions that is a `tf.train.experimental.PythonState` too.

    It is a subclass of the same name, made when the first position is: the import of shardctl.tfds
    loads no TensorFlow. Where TensorFlow is missing it is the class itself.
    """
    try:
        tensorflow()
    except MissingDependencyError:
        return of
    made: Class = _trackable_class(of)
    return made


@cache
def _trackable_class(of: Any) -> Any:
    tf = tensorflow()
    python_state = tf.train.experimental.PythonState

    class SavedState(python_state):  # type: ignore[misc, valid-type]
        """The state of a position as it was when an asynchronous save began."""

        def __init__(self, position: Any) -> None:
            self._position = position
            self.take()

        def take(self) -> None:
            self._state = self._position.get_state()

        def serialize(self) -> bytes:
            return bytes(self._state)

        def deserialize(self, string_value: bytes) -> None:
            self._position.deserialize(string_value)

    class Trackable(of, python_state):  # type: ignore[misc, valid-type]
        def serialize(self) -> bytes:
            """Return the state, for a checkpoint that is written."""
            return bytes(self.get_state())

        def deserialize(self, string_value: bytes) -> None:
            """Go to a state that a checkpoint holds."""
            self.set_state(string_value)

        def _serialize_to_tensors(self) -> Any:
            if tf.inside_function():
                raise UsageError(
                    "a checkpoint with a position is saved within a tf.function, whose graph would "
                    "keep the position of the first call; save it outside"
                )
            return super()._serialize_to_tensors()

        def _copy_trackable_to_cpu(self, object_map: Any) -> None:
            # What an asynchronous save calls for every object before it returns; the thread that
            # writes calls `serialize` later, when the position is later. TensorFlow traces the
            # call into a function once, so that it takes an operation to run every time.
            if self not in object_map:
                object_map[self] = SavedState(self)
            tf.py_function(object_map[self].take, [], [])

    # The subclass looks like the class in reprs, in pickles and in help.
    Trackable.__name__, Trackable.__qualname__ = of.__name__, of.__qualname__
    Trackable.__module__, Trackable.__doc__ = of.__module__, of.__doc__
    return Trackable
