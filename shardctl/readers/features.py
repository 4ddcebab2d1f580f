"""The features TFDS describes beside a prepared dataset, features.json: what an example takes.

The file is a proto `Feature` of TFDS as JSON (core/features/feature.py, `to_proto`). Older versions
wrote mappings of `type` and `content` (`from_json`, "Legacy mode"), which are read as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shardctl.core.dataset.dataset import ExampleSize
from shardctl.core.tfds_rules import FEATURES_FILENAME
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.json_text import read_json
from shardctl.files.stores.remote_path import AnyPath

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
        leaves = list(_leaves(_node(document), ()))
    except (DatasetError, RecursionError):
        return None
    return ExampleSize(
        num_bytes=sum(leaf.num_bytes or 0 for leaf in leaves),
        num_tensors=len(leaves),
        unknown=tuple("/".join(leaf.path) or _EXAMPLE for leaf in leaves if leaf.num_bytes is None),
    )


@dataclass(frozen=True, kw_only=True)
class _Leaf:
    """A tensor of a decoded example; `num_bytes` None where examples differ in it."""

    path: tuple[str, ...]
    num_bytes: int | None


@dataclass(frozen=True, kw_only=True)
class _Node:
    """A feature: the class that decodes it, None where it is not TFDS's, and its own fields."""

    kind: str | None
    content: Mapping[str, Any]


def _node(value: object) -> _Node:
    feature = fields.mapping(value, "a feature")
    if "type" in feature and "content" in feature:  # as older versions wrote it
        name, content = feature["type"], feature["content"]
    else:
        name = _field(feature, "pythonClassName", "python_class_name")
        content = next((feature[key] for key in feature if isinstance(feature[key], Mapping)), {})
    text = fields.text(name, "the class of a feature")
    kind = text.rpartition(".")[2] if text.startswith(_TFDS) else None
    return _Node(kind=kind, content=content if isinstance(content, Mapping) else {})


def _leaves(node: _Node, path: tuple[str, ...]) -> Iterator[_Leaf]:
    """Yield the tensors of a feature; one of unknown size for a class that is not known."""
    find = _KINDS.get(node.kind or "")
    if find is None:
        yield _Leaf(path=path, num_bytes=None)
    else:
        yield from find(node.content, path)


def _features_dict(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    inner = content.get("features", content)
    if isinstance(inner, Mapping) and "type" in inner and isinstance(inner["type"], str):
        inner = content  # an old mapping with a feature that is named `features`
    for name, feature in fields.mapping(inner, "the features").items():
        yield from _leaves(_node(feature), (*path, name))


def _sequence(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    length = _dimension(content.get("length", 0))  # protobuf leaves out a 0
    if "length" in content and content["length"] is None:  # as older versions wrote it
        length = None
    for leaf in _leaves(_node(content.get("feature")), path):
        known = length is not None and leaf.num_bytes is not None
        yield _Leaf(
            path=leaf.path, num_bytes=(leaf.num_bytes or 0) * (length or 0) if known else None
        )


def _tensor(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    yield _Leaf(
        path=path,
        # An optional one may be None in an example.
        num_bytes=None if content.get("optional") else _array_bytes(content),
    )


def _label(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    yield _Leaf(path=path, num_bytes=_DTYPE_BYTES["int64"])


def _box(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    # Four float32, whatever is written (core/features/bounding_boxes.py, from_json_content).
    yield _Leaf(path=path, num_bytes=4 * _DTYPE_BYTES["float32"])


def _translation(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    languages = content.get("languages")
    for name in languages if isinstance(languages, list) else ():
        yield _Leaf(path=(*path, str(name)), num_bytes=None)


def _free_translation(content: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[_Leaf]:
    for name in ("language", "translation"):
        yield _Leaf(path=(*path, name), num_bytes=None)


# What is not here (Text, Dataset, features of other libraries) is of unknown size.
_KINDS: dict[str, Callable[[Mapping[str, Any], tuple[str, ...]], Iterator[_Leaf]]] = {
    "FeaturesDict": _features_dict,
    "Sequence": _sequence,
    "Tensor": _tensor,
    "Scalar": _tensor,
    "Image": _tensor,
    "LabeledImage": _tensor,
    "Video": _tensor,
    "Audio": _tensor,
    "ClassLabel": _label,
    "BBoxFeature": _box,
    "Translation": _translation,
    "TranslationVariableLanguages": _free_translation,
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


def _field(value: Mapping[str, object], *spellings: str) -> object:
    return next((value[spelling] for spelling in spellings if spelling in value), None)
