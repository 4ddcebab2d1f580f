"""Batches of one shape, their mask, and what fills them up; what makes no such batch is refused."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from tests.cases import add_cases
from tests.tfds_datasets import build_dataset

Named = namedtuple("Named", "x y")
NUM_EXAMPLES = 7


@pytest.fixture(scope="module")
def builder(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    features = tfds.features.FeaturesDict(
        {
            "id": np.int64,
            "large": tfds.features.Tensor(shape=(), dtype=np.uint64),
            "flags": tfds.features.Tensor(shape=(2,), dtype=np.bool_),
            "text": tfds.features.Text(),
            "numbers": tfds.features.Sequence(np.int64, length=3),
            "some": tfds.features.Sequence(np.int64),
            "nested": {"deep": {"x": np.float32}},
            "image": tfds.features.Image(shape=(4, 4, 1)),
        }
    )
    made: dict[str, Any] = {"features": features, "example": example}
    folder = build_dataset(tmp_path_factory.mktemp("data"), splits={"test": [3, 0, 4]}, **made)
    return tfds.builder_from_directory(folder)


def example(i: int) -> dict[str, Any]:
    return {
        "id": i,
        "large": 2**63 + i,
        "flags": [i % 2 == 0, True],
        "text": f"é{i}",
        "numbers": [i, i + 1, i + 2],
        "some": [i] * i,
        "nested": {"deep": {"x": i / 4}},
        "image": np.full((4, 4, 1), i, np.uint8),
    }


def fixed(one: Any) -> Any:
    """Return an example without the component that has no one shape."""
    return {name: value for name, value in one.items() if name != "some"}


def batches(builder: Any, transform: Callable[[Any], Any] | None, **arguments: Any) -> list[Any]:
    arguments = {"batch_per_device": 2, **arguments}
    made = shardctl.tfds.evaluation(builder, "test", transform=transform, **arguments)
    return list(made.as_numpy_iterator())


def test_every_type_of_component_comes_through(builder: Any) -> None:
    for padding, devices in (("zeros", 1), ("repeat", 2)):
        found = batches(
            builder,
            fixed,
            batch_per_device=4 // devices,
            devices=devices,
            padding=padding,
            add_tfds_id=True,
        )
        assert [mask.tolist() for _, mask in found] == [[True] * 4, [True, True, True, False]]
        assert {mask.dtype for _, mask in found} == {np.dtype(bool)}
        for name in ("id", "large", "flags", "numbers", "image", "text"):
            values = np.concatenate([batch[name] for batch, _ in found])
            expected = np.array([example(i)[name] for i in range(NUM_EXAMPLES)])
            if name == "text":
                expected = np.array([text.encode() for text in expected], object)
            assert values[:NUM_EXAMPLES].tolist() == expected.tolist()
            assert name == "text" or values.dtype == found[0][0][name].dtype
            zero = np.zeros_like(values[0]) if name != "text" else b""
            filled = values[0] if padding == "repeat" else zero
            assert np.array_equal(values[NUM_EXAMPLES], filled)
        assert found[1][0]["nested"]["deep"]["x"][:3].tolist() == [1.0, 1.25, 1.5]
        assert found[0][0]["large"].dtype == np.uint64
        assert found[0][0]["tfds_id"][0] == b"toy-test.tfrecord-00000-of-00003__0"
        add_cases()


def test_the_mask_stands_behind_a_tuple_and_beside_all_else(builder: Any, tf: Any) -> None:
    forms: list[tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = [
        (lambda e: (e["id"], e["text"]), lambda e, mask: (e["id"], e["text"], mask)),
        (lambda e: (e["id"],), lambda e, mask: (e["id"], mask)),
        (lambda e: e["id"], lambda e, mask: (e["id"], mask)),
        (lambda e: {"a": e["id"]}, lambda e, mask: ({"a": e["id"]}, mask)),
        (lambda e: Named(e["id"], e["text"]), lambda e, mask: (Named(e["id"], e["text"]), mask)),
    ]

    def made(transform: Callable[[Any], Any]) -> Any:
        return shardctl.tfds.evaluation(builder, "test", batch_per_device=2, transform=transform)

    # tf.distribute does not share a part again.
    policy = made(fixed).options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF
    plain, mask = made(fixed).element_spec
    for transform, expected in forms:
        found, wanted = made(transform).element_spec, expected(plain, mask)
        assert repr(found) == repr(wanted)
        assert type(found[0]) is type(wanted[0])
        add_cases()


def test_devices_share_a_batch_in_order(builder: Any) -> None:
    found = batches(builder, lambda e: (e["id"], e["image"]), devices=2, device_axis=True)
    ids, images, mask = found[1]
    assert ids.tolist() == [[4, 5], [6, 0]]
    assert mask.tolist() == [[True, True], [True, False]]
    assert images.shape == (2, 2, 4, 4, 1)
    assert images[:, :, 0, 0, 0].tolist() == ids.tolist()


def test_what_makes_no_batch_of_one_shape_is_refused_by_name(builder: Any, tf: Any) -> None:
    refused: list[tuple[Callable[[Any], Any], str]] = [
        (lambda e: e, r"example some is a Tensor of shape \(None,\).*tf.pad"),
        (lambda e: (e["id"], {"a": e["some"]}), r"example 1/a is a Tensor of shape"),
        (lambda e: Named(e["id"], e["some"]), r"example y is a Tensor of shape"),
        (lambda e: e["some"], "example is a Tensor of shape"),
        (lambda e: tf.py_function(lambda x: x, [e["id"]], tf.int64), "<unknown>.*ensure_shape"),
        (lambda e: {"r": tf.RaggedTensor.from_row_lengths(e["numbers"], [1, 2])},
         r"example r is a RaggedTensor.*to_tensor"),
        (lambda e: (e["id"], tf.sparse.from_dense(e["numbers"])),
         r"example 1 is a SparseTensor.*to_dense"),
        (lambda e: (e["id"], None), r"example 1 is a NoneTensor.*leave it out"),
    ]  # fmt: skip
    for transform, words in refused:
        with pytest.raises(UsageError, match=words):
            batches(builder, transform, host="8/9" if "tf.pad" in words else "0/1")
        add_cases()


def test_weights_of_keras(builder: Any, tf: Any) -> None:
    for device_axis in (False, True):
        x, y, weight = batches(
            builder, lambda e: (e["id"], e["id"]), sample_weight=True, device_axis=device_axis
        )[-1]
        assert weight.dtype == np.float32
        assert weight.ravel().tolist() == [1, 0]
        assert x.shape == y.shape == weight.shape

    def weighted(e: Any) -> Any:
        return e["id"], e["id"], (tf.cast(e["id"], tf.float64), e["numbers"])

    single, several = batches(builder, weighted, sample_weight=True)[-1][2]
    assert single.dtype == np.float64
    assert single.tolist() == [6, 0]
    assert several.tolist() == [[6, 7, 8], [0, 0, 0]]
    refused = {"no tuple": fixed, "a tuple of 1": lambda e: (e["id"],)}
    for words, transform in refused.items():
        with pytest.raises(UsageError, match=f"an example is {words}; return"):
            batches(builder, transform, sample_weight=True)
