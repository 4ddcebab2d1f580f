"""Positions as TensorFlow's checkpoints take them: saved and restored together with the weights."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from shardctl.errors import MissingDependencyError, UsageError
from shardctl.tfds.imports import tensorflow

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
                    "hold the position of the first call for ever; save it outside"
                )
            return super()._serialize_to_tensors()

        def _copy_trackable_to_cpu(self, object_map: Any) -> None:
            # What an asynchronous save calls for every object before it returns; the thread that
            # writes calls `serialize` later, when the position has gone on. TensorFlow traces the
            # call into a function once, so that it takes an operation to run every time.
            if self not in object_map:
                object_map[self] = SavedState(self)
            tf.py_function(object_map[self].take, [], [])

        def __reduce__(self) -> Any:
            # Not what TensorFlow keeps in it: checkpoints that it belongs to here.
            own = {k: value for k, value in vars(self).items() if not k.startswith("_self_")}
            # Nor a loop, which is of the position that it counts.
            return _remade, (of, {**own, "_consumed": self._trained(), "_loop": None})

    Trackable.__name__, Trackable.__qualname__ = of.__name__, of.__qualname__
    Trackable.__module__, Trackable.__doc__ = of.__module__, of.__doc__
    return Trackable


def _remade(of: Any, attributes: dict[str, Any]) -> Any:
    """Return the position that was copied or pickled."""
    position = of.__new__(of)
    vars(position).update(attributes)
    return position
