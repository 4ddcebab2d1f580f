"""What features.json says of the size of an example, beside what TFDS decodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import ExampleSize
from shardctl.metadata.tfds_metadata import example_size, read_example_size, read_tfds_folder
from tests.cases import FUZZ, check_cases, fuzzed, some
from tests.tfds_datasets import build_dataset

_TFDS = "tensorflow_datasets.core.features."

_DTYPES = ["uint8", "int8", "bool", "int16", "uint16", "float16", "bfloat16", "int32", "float32"]
_DTYPES += ["int64", "uint64", "float64"]

# A feature as nested tuples, so that a failing case can be read: made of TFDS's by `_feature`.
_lengths = st.lists(st.one_of(st.integers(1, 5), st.none()), max_size=3).map(tuple)
_leaves = st.one_of(
    st.tuples(st.just("Tensor"), _lengths, st.sampled_from([*_DTYPES, "string"])),
    st.tuples(st.just("Scalar"), st.just(()), st.sampled_from(_DTYPES)),
    st.tuples(
        st.just("Image"),
        st.tuples(st.sampled_from([None, 3]), st.sampled_from([None, 7]), st.sampled_from([1, 3])),
        st.sampled_from(["uint8", "uint16"]),
    ),
    st.tuples(
        st.just("Video"),
        st.tuples(st.sampled_from([None, 2]), st.just(4), st.just(5), st.just(3)),
        st.just("uint8"),
    ),
    st.tuples(st.just("Audio"), st.sampled_from([(None,), (9,), (9, 2)]), st.just("int64")),
    *(st.just((name, (), "")) for name in ("ClassLabel", "Text")),
)
_features = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.tuples(st.just("Sequence"), inner, st.sampled_from([None, 1, 4])),
        st.tuples(
            st.just("FeaturesDict"),
            st.dictionaries(st.sampled_from(["a", "b", "features", "type"]), inner, min_size=1),
            st.none(),
        ),
    ),
    max_leaves=6,
)


def _feature(tfds: Any, case: Any) -> Any:
    import numpy as np
    import tensorflow as tf

    kind, shape, other = case
    made = getattr(tfds.features, kind)
    if kind == "FeaturesDict":
        return made({name: _feature(tfds, inner) for name, inner in shape.items()})
    if kind == "Sequence":
        return made(_feature(tfds, shape), length=other)
    if kind == "ClassLabel":
        return made(num_classes=3)
    if not other:
        return made()
    dtype = np.object_ if other == "string" else tf.dtypes.as_dtype(other).as_numpy_dtype
    if kind == "Scalar":
        return made(dtype=dtype)
    if kind == "Video":
        return made(shape=shape)
    return made(shape=shape, dtype=dtype)


def _by_specs(feature: Any) -> ExampleSize:
    import tensorflow as tf

    num_bytes, unknown = 0, []
    paths = _flat(feature.get_tensor_spec(), ())
    for path, spec in paths:
        if spec.dtype == tf.string or not spec.shape.is_fully_defined():
            unknown.append("/".join(path) or "the example")
        else:
            num_bytes += spec.shape.num_elements() * spec.dtype.size
    return ExampleSize(num_bytes=num_bytes, num_tensors=len(paths), unknown=tuple(unknown))


def _flat(specs: Any, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], Any]]:
    if not isinstance(specs, dict):
        return [(path, specs)]
    return [leaf for name, inner in specs.items() for leaf in _flat(inner, (*path, name))]


@fuzzed(150, FUZZ)
def test_sizes_are_those_of_the_tensors_that_tfds_decodes(tf: Any, num_cases: int) -> None:
    import tensorflow_datasets as tfds
    from google.protobuf import json_format

    def check(case: Any) -> None:
        feature = _feature(tfds, case)
        expected = _by_specs(feature)
        found = some(example_size(json_format.MessageToDict(feature.to_proto())))
        assert sorted(found.unknown) == sorted(expected.unknown)
        assert (found.num_bytes, found.num_tensors) == (expected.num_bytes, expected.num_tensors)

    check_cases(_features, check, num_cases)


def test_features_of_no_library_that_is_known_are_of_unknown_size() -> None:
    tensor: dict[str, Any] = {"shape": {"dimensions": ["4"]}, "dtype": "int64"}
    features = {
        "mine": {"pythonClassName": "my.Tensor", "tensor": tensor},
        "maybe": {
            "pythonClassName": _TFDS + "tensor_feature.Tensor",
            "tensor": {**tensor, "optional": True},
        },
    }
    kind = _TFDS + "features_dict.FeaturesDict"
    document = {"pythonClassName": kind, "featuresDict": {"features": features}}
    unknown = ("mine", "maybe")
    assert example_size(document) == ExampleSize(num_bytes=0, num_tensors=2, unknown=unknown)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"pythonClassName": 3}', '{"type": "x"}', '{"a": NaN}']
)
def test_what_cannot_be_read_says_nothing_and_hinders_nothing(tmp_path: Path, text: str) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (folder / "features.json").write_text(text)
    assert read_example_size(folder) is None
    (folder / "features.json").unlink()
    assert read_tfds_folder(folder).example_size is None
