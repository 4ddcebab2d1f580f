"""Keras on padded batches: what equals an evaluation of all examples, and what does not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import shardctl
import shardctl.tfds
from tests.cases import add_cases
from tests.killed_runs import build_images, image_of

LENGTHS = [100, 0, 81, 20]  # batches of 64 leave 9
NUM_EXAMPLES = sum(LENGTHS)


@pytest.fixture(scope="module")
def arrays() -> tuple[Any, Any]:
    """All images, as the pipeline prepares them, and labels."""
    examples = [image_of(i) for i in range(NUM_EXAMPLES)]
    images = np.stack([one["image"] for one in examples]).astype(np.float32) / 255
    return images, np.array([one["label"] for one in examples])


def compiled_model(**arguments: Any) -> Any:
    import keras

    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.Input((28, 28, 1)), keras.layers.Flatten(), keras.layers.Dense(10)]
    )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=[
            keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
            keras.metrics.SparseCategoricalCrossentropy(from_logits=True, name="cross_entropy"),
        ],
        **arguments,
    )
    return model


@pytest.fixture(scope="module")
def padded(tf: Any, tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that makes padded batches."""
    folder = build_images(tmp_path_factory.mktemp("data"), test=LENGTHS)
    builder = tfds.builder_from_directory(folder)

    def prepare(one: Any) -> Any:
        return tf.cast(one["image"], tf.float32) / 255, one["label"]

    def batches(**arguments: Any) -> Any:
        return shardctl.tfds.evaluation(
            builder, "test", batch=64, transform=prepare, sample_weight=True, **arguments
        )

    return batches


@pytest.mark.slow
def test_what_equals_an_evaluation_of_all_examples(padded: Any, arrays: tuple[Any, Any]) -> None:
    import keras

    images, labels = arrays
    model = compiled_model(metrics=[keras.metrics.SparseCategoricalAccuracy(name="of_places")])

    def evaluate_all() -> Any:
        return model.evaluate(images, labels, batch_size=NUM_EXAMPLES, verbose=0, return_dict=True)

    everything, places = evaluate_all(), -(-NUM_EXAMPLES // 64) * 64
    for batches in (padded(), padded(padding="zeros")):
        found = model.evaluate(batches, verbose=0, return_dict=True)
        assert found["accuracy"] == everything["accuracy"]
        assert found["of_places"] != everything["of_places"]
        assert found["cross_entropy"] == pytest.approx(everything["cross_entropy"], rel=1e-6)
        assert found["loss"] * places / NUM_EXAMPLES == pytest.approx(everything["loss"], rel=1e-6)
        assert found == model.evaluate(batches, steps=len(batches), verbose=0, return_dict=True)
        add_cases()
    _, read, weights = zip(*batches.as_numpy_iterator(), strict=True)
    predicted = model.predict(batches, verbose=0).argmax(-1)
    right = (predicted == np.concatenate(read))[np.concatenate(weights) > 0]
    assert len(right) == NUM_EXAMPLES
    assert everything["accuracy"] == float(np.float32(right.sum()) / np.float32(NUM_EXAMPLES))
    history = model.fit(images, labels, batch_size=67, validation_data=batches, verbose=0).history
    assert history["val_accuracy"] == [evaluate_all()["accuracy"]]


def test_every_host_runs_one_shape_and_their_counts_add_up(
    padded: Any, arrays: tuple[Any, Any]
) -> None:
    import keras

    class Noted(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            traced.append(x.shape[0])
            return x

    traced: list[int] = []
    images, labels = arrays
    model = compiled_model()
    noted = keras.Sequential([keras.Input((28, 28, 1)), Noted(), *model.layers])
    noted.compile(loss=model.loss, weighted_metrics=[keras.metrics.SparseCategoricalAccuracy()])
    traced.clear()
    right, steps = 0, set()
    for index in range(3):  # each has 67 examples
        batches = padded(hosts=3, host=index)
        found = noted.evaluate(batches, verbose=0)[1] * 67
        assert found == pytest.approx(round(found), abs=1e-4)
        right += round(found)
        steps.add(len(batches))
    assert traced == [64]
    assert steps == {2}
    assert right == int((model.predict(images, verbose=0).argmax(-1) == labels).sum())
    noted.evaluate(images, labels, batch_size=64, verbose=0)  # without padding
    assert traced == [64, None]
