"""The features TFDS describes beside a prepared dataset, features.json: what an example takes.

The file is a proto `Feature` of TFDS as JSON (core/features/feature.py, `to_proto`). Older versions
wrote mappings of `type` and `content` (`from_json`, "Legacy mode"), which are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shardctl.base.tfds_rules import FEATURES_FILENAME
from shardctl.dataset.element_size import ExampleSize
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.json_text import read_json
from shardctl.stores.remote_path import AnyPath

_DTYPE_BYTES = {
    **dict.fromkeys(("bool", "bool_", "int8", "uint8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}
_TFDS = "tensorflow_datasets."
_EXAMPLE = "the example"  # the name of a feature that has none, since it is all there is


def read_example_size(folder: AnyPath) -> ExampleSize | None:
    """Return what the features.json of a folder says of an example's size.

    None where there is none, or where it cannot be read: no answer but a size depends on it.
    """
    try:
        return example_size(read_json(folder / FEATURES_FILENAME))
    except DatasetError:
        return None


def example_size(document: object) -> ExampleSize | None:
    """Return what a parsed features.json says of an example's size, None where it says nothing.

    >>> image = {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
    ...          "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8"}}
    >>> text = {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text",
    ...         "text": {}}
    >>> example_size({"pythonClassName": "tensorflow_datasets.core.features.features_dict."
    ...               "FeaturesDict", "featuresDict": {"features": {"x": image, "name": text}}})
    ExampleSize(num_bytes=784, num_tensors=2, unknown=('name',))
    """
    try:
        leaves = list(_leaves(document, ()))
    except (DatasetError, RecursionError):
        return None
    return ExampleSize(
        num_bytes=sum(num_bytes or 0 for _, num_bytes in leaves),
        num_tensors=len(leaves),
        unknown=tuple("/".join(path) or _EXAMPLE for path, size in leaves if size is None),
    )


_Content = Mapping[str, Any]
_Path = tuple[str, ...]
_Leaves = Iterator[tuple[_Path, int | None]]  # tensors: their paths, and their bytes if all agree


def _node(value: object) -> tuple[str | None, _Content]:
    """Return the class that decodes a feature, None where it is not TFDS's, and its own fields."""
    feature = fields.mapping(value, "a feature")
    if "type" in feature and "content" in feature:  # as older versions wrote it
        name, content = feature["type"], feature["content"]
    else:
        name = feature.get("pythonClassName", feature.get("python_class_name"))
        content = next((feature[key] for key in feature if isinstance(feature[key], Mapping)), {})
    text = fields.text(name, "the class of a feature")
    kind = text.rpartition(".")[2] if text.startswith(_TFDS) else None
    return kind, content if isinstance(content, Mapping) else {}


def _leaves(value: object, path: _Path) -> _Leaves:
    """Yield the tensors of a feature; one of unknown size for a class that is not known."""
    kind, content = _node(value)
    return _KINDS.get(kind or "", _sized(None))(content, path)


def _features_dict(content: _Content, path: _Path) -> _Leaves:
    inner = content.get("features", content)
    if isinstance(inner, Mapping) and "type" in inner and isinstance(inner["type"], str):
        inner = content  # an old mapping with a feature that is named `features`
    for name, feature in fields.mapping(inner, "the features").items():
        yield from _leaves(feature, (*path, name))


def _sequence(content: _Content, path: _Path) -> _Leaves:
    length = _dimension(content.get("length", 0))  # protobuf leaves out a 0
    for inner, num_bytes in _leaves(content.get("feature"), path):
        yield inner, None if length is None or num_bytes is None else num_bytes * length


def _tensor(content: _Content, path: _Path) -> _Leaves:
    # An optional one may be None in an example.
    yield path, None if content.get("optional") else _array_bytes(content)


def _translation(content: _Content, path: _Path) -> _Leaves:
    languages = content.get("languages")
    for name in languages if isinstance(languages, list) else ():
        yield (*path, str(name)), None


def _sized(num_bytes: int | None, *names: str) -> Callable[[_Content, _Path], _Leaves]:
    """Return what yields one tensor of a size, or one of each name."""
    ends: list[_Path] = [(name,) for name in names] or [()]
    return lambda content, path: ((path + end, num_bytes) for end in ends)


# What is not here (Text, Dataset, features of other libraries) is of unknown size.
_KINDS: dict[str, Callable[[_Content, _Path], _Leaves]] = {
    "FeaturesDict": _features_dict,
    "Sequence": _sequence,
    "Tensor": _tensor,
    "Scalar": _tensor,
    "Image": _tensor,
    "LabeledImage": _tensor,
    "Video": _tensor,
    "Audio": _tensor,
    "ClassLabel": _sized(_DTYPE_BYTES["int64"]),
    # Four float32, whatever is written (core/features/bounding_boxes.py, from_json_content).
    "BBoxFeature": _sized(4 * _DTYPE_BYTES["float32"]),
    "Translation": _translation,
    "TranslationVariableLanguages": _sized(None, "language", "translation"),
}


def _array_bytes(content: Mapping[str, Any]) -> int | None:
    """Return the bytes of an array of a shape and dtype, None where one of them is open."""
    shape = content.get("shape", {})
    dimensions = shape.get("dimensions", []) if isinstance(shape, Mapping) else shape
    size = _DTYPE_BYTES.get(str(content.get("dtype")))
    if size is None or not isinstance(dimensions, list):
        return None
    lengths = [_dimension(length) for length in dimensions]
    known = [length for length in lengths if length is not None]
    return size * math.prod(known) if len(known) == len(lengths) else None


def _dimension(value: object) -> int | None:
    """Return a length, None where it is open: null or -1."""
    if value is None:
        return None
    length = fields.proto_int64(value, "a length")
    return None if length < 0 else length
