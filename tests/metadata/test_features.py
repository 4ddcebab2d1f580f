"""What features.json says of the size of an example, beside what TFDS decodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.element_size import ExampleSize
from shardctl.metadata.tfds_metadata import example_size, read_example_size, read_tfds_folder
from shardctl.tfds.builder_layout import dataset_of
from tests.cases import FUZZ, check_cases
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
    *(st.just((name, (), "")) for name in ("ClassLabel", "BBoxFeature", "Text", "Translation")),
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
    if kind == "Translation":
        return made(languages=["de", "en"])
    if not other:
        return made()
    dtype = np.object_ if other == "string" else tf.dtypes.as_dtype(other).as_numpy_dtype
    if kind == "Scalar":
        return made(dtype=dtype)
    if kind == "Video":
        return made(shape=shape)
    return made(shape=shape, dtype=dtype)


def _by_specs(feature: Any) -> ExampleSize:
    """Return the size by the tensors that TFDS says it decodes to."""
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


def _check_sizes(num_cases: int, *, fuzz: bool = False) -> None:
    import tensorflow_datasets as tfds
    from google.protobuf import json_format

    def check(case: Any) -> None:
        feature = _feature(tfds, case)
        expected = _by_specs(feature)
        proto = json_format.MessageToDict(feature.to_proto())
        old = json.loads(json.dumps(feature.to_json()))
        for document in (proto, old):
            found = example_size(document)
            assert found is not None
            assert sorted(found.unknown) == sorted(expected.unknown), document
            assert (found.num_bytes, found.num_tensors) == (
                expected.num_bytes,
                expected.num_tensors,
            ), document

    check_cases(_features, check, num_cases, fuzz=fuzz)


def test_sizes_are_those_of_the_tensors_that_tfds_decodes(tf: Any) -> None:
    _check_sizes(150)


@pytest.mark.fuzz
def test_sizes_of_many_features(tf: Any) -> None:
    _check_sizes(FUZZ, fuzz=True)


def _features_of_fixed_size(tfds: Any, *, images: bool) -> dict[str, Any]:
    import numpy as np

    found = {
        "label": tfds.features.ClassLabel(num_classes=10),
        "vector": tfds.features.Tensor(shape=(7, 2), dtype=np.float32),
        "flags": tfds.features.Sequence(np.bool_, length=5),
        "objects": tfds.features.Sequence(
            {"bbox": tfds.features.BBoxFeature(), "id": np.int32}, length=3
        ),
        "inner": {"scalar": tfds.features.Scalar(dtype=np.float64), "again": np.int64},
    }
    if images:
        found["image"] = tfds.features.Image(shape=(28, 27, 3))
        found["depth"] = tfds.features.Image(shape=(6, 5, 1), dtype=np.uint16)
    return found


def _example(i: int) -> dict[str, Any]:
    import numpy as np
    import tensorflow_datasets as tfds

    box = tfds.features.BBox(ymin=0.0, xmin=0.1, ymax=0.5, xmax=1.0)
    return {
        "image": np.full((28, 27, 3), i, np.uint8),
        "depth": np.full((6, 5, 1), i, np.uint16),
        "label": i % 10,
        "vector": np.ones((7, 2), np.float32),
        "flags": [True] * 5,
        "objects": [{"bbox": box, "id": i}] * 3,
        "inner": {"scalar": 0.5, "again": i},
        "caption": "a caption",
        "words": ["one", "two"],
    }


# Without TensorFlow, array_record has no decoder of images unless PIL is there.
@pytest.mark.parametrize(("file_format", "images"), [("tfrecord", True), ("array_record", False)])
def test_the_arrays_of_a_decoded_example_have_so_many_bytes(
    tmp_path: Path, tf: Any, file_format: str, images: bool
) -> None:
    import numpy as np
    import tensorflow_datasets as tfds

    fixed = _features_of_fixed_size(tfds, images=images)
    texts = {"caption": tfds.features.Text(), "words": tfds.features.Sequence(tfds.features.Text())}
    features = tfds.features.FeaturesDict({**fixed, **texts})
    folder = build_dataset(
        tmp_path,
        splits={"train": [2]},
        file_format=file_format,
        features=features,
        example=lambda i: {name: _example(i)[name] for name in features},
    )
    size = read_tfds_folder(folder).example_size
    assert size is not None
    assert sorted(size.unknown) == ["caption", "words"]
    builder = tfds.builder_from_directory(folder)
    if file_format == "array_record":
        decoded = builder.as_data_source(split="train")[0]
    else:
        decoded = next(iter(tfds.as_numpy(builder.as_dataset(split="train"))))
    arrays = [np.asarray(leaf) for _, leaf in _flat(decoded, ())]
    assert size.num_tensors == len(arrays)
    numbers = [array for array in arrays if array.dtype.kind not in "OSU"]
    assert size.num_bytes == sum(array.nbytes for array in numbers)
    assert dataset_of(builder).example_size == size


def test_features_of_no_library_that_is_known_are_of_unknown_size() -> None:
    document = {
        "pythonClassName": _TFDS + "features_dict.FeaturesDict",
        "featuresDict": {
            "features": {
                "mine": {
                    "pythonClassName": "my.project.Tensor",
                    "tensor": {"shape": {"dimensions": ["4"]}, "dtype": "int64"},
                },
                "maybe": {
                    "pythonClassName": _TFDS + "tensor_feature.Tensor",
                    "tensor": {"shape": {}, "dtype": "int64", "optional": True},
                },
                "steps": {
                    "pythonClassName": _TFDS + "dataset_feature.Dataset",
                    "sequence": {"feature": {}, "length": "-1"},
                },
            }
        },
    }
    assert example_size(document) == ExampleSize(
        num_bytes=0, num_tensors=3, unknown=("mine", "maybe", "steps")
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"pythonClassName": 3}', '{"type": "x"}', '{"a": NaN}']
)
def test_what_cannot_be_read_says_nothing_and_hinders_nothing(tmp_path: Path, text: str) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (folder / "features.json").write_text(text)
    assert read_example_size(folder) is None
    assert read_tfds_folder(folder).example_size is None


def test_a_folder_without_features_has_no_size(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (folder / "features.json").unlink(missing_ok=True)
    assert read_tfds_folder(folder).example_size is None
