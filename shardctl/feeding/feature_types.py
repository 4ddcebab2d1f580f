"""Examples with the types of their features: a data source hands out Python numbers without."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TEXTS = ("object_", "object", "str", "str_", "bytes_")


def says_types(source: Any) -> bool:
    """Return whether a data source knows the types of its features, as TFDS's do."""
    return getattr(getattr(source, "dataset_info", None), "features", None) is not None


def types_of(source: Any) -> Any:
    """Return the types of the features of a source that knows them: names of NumPy's, or None."""
    return _types(source.dataset_info.features.get_tensor_info())


def is_text(type_name: str) -> bool:
    """Return whether a type is that of texts, which NumPy has no fixed width for."""
    return type_name in _TEXTS


def typed(value: Any, types: Any) -> Any:
    """Return an example whose numbers, and lists of numbers, have the types of their features.

    >>> import numpy as np
    >>> found = typed({"x": 0.5, "ids": [1, 2], "text": b"a"},
    ...               {"x": "float32", "ids": "uint8", "text": "object_"})
    >>> found["x"].dtype, found["ids"].dtype, found["text"]
    (dtype('float32'), dtype('uint8'), b'a')
    """
    if isinstance(types, dict) and isinstance(value, dict):
        return {name: typed(one, types.get(name)) for name, one in value.items()}
    if not isinstance(types, str) or is_text(types):
        return value
    import numpy as np

    if isinstance(value, bool | int | float):
        return np.dtype(types).type(value)
    if isinstance(value, list):
        try:
            return np.asarray(value, types)
        except (TypeError, ValueError):
            return value  # rows of several lengths are no array
    return value


def with_types(source: Any) -> Any:
    """Return a source of the same records, whose examples have the types of their features."""
    return TypedSource(source) if says_types(source) else source


class TypedSource:
    """The records of a data source with the types that tf.data has; called what that is called."""

    def __init__(self, source: Any) -> None:
        self._source, self._types = source, types_of(source)

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: Any) -> Any:
        return typed(self._source[index], self._types)

    def __iter__(self) -> Iterator[Any]:
        return (self[index] for index in range(len(self)))

    def __repr__(self) -> str:
        return repr(self._source)


def _types(info: Any) -> Any:
    if isinstance(info, dict):
        return {name: _types(one) for name, one in info.items()}
    kind = getattr(info, "np_dtype", None)
    return None if kind is None else str(getattr(kind, "__name__", kind))
