"""Keras fit over Grain, each epoch in the order of tf.data's fit: what a model is trained on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl import ReadSettings
from shardctl.errors import UsageError
from shardctl.grain import Sampler, data_loader, fit_epochs, map_dataset
from shardctl.tfds import pipeline
from tests.cases import counted
from tests.grain.toys import needs_grain, toy
from tests.tfds_datasets import build_dataset

LENGTHS = (11, 13, 16)
SETTINGS = ReadSettings(cycle=2, shuffle_seed=5, buffer=9, buffer_seed=3, batch=8)
SOURCE = [(np.full(1, i, np.float32), np.zeros(1, np.float32)) for i in range(40)]


@pytest.fixture(scope="module")
def keras() -> Any:
    needs_grain()
    return pytest.importorskip("keras")


@pytest.fixture
def trained(keras: Any) -> Callable[..., list[list[int]]]:
    """Return a function that fits a model and returns the batches it was trained on."""

    def batches_of(dataset: Any, **fit: Any) -> list[list[int]]:
        seen: list[list[int]] = []

        class Seen(keras.Model):  # type: ignore[misc]
            def train_step(self, data: Any) -> Any:
                seen.append([int(i) for i in np.asarray(data[0]).ravel()])
                return {"loss": keras.ops.convert_to_tensor(0.0)}

        model = Seen()
        model.compile(loss="mse", run_eagerly=True)
        model.fit(dataset, verbose=0, **fit)
        return seen

    return batches_of


def loaded(settings: ReadSettings) -> tuple[Any, Any]:
    loader = data_loader(SOURCE, toy(*LENGTHS), "train", settings)
    return loader, loader


def mapped(settings: ReadSettings) -> tuple[Any, Any]:
    examples = map_dataset(SOURCE, toy(*LENGTHS), "train", settings)
    return examples.batch(8), examples


def iterated(settings: ReadSettings) -> tuple[Any, Any]:
    examples = map_dataset(SOURCE, toy(*LENGTHS), "train", settings)
    return examples.batch(8).to_iter_dataset(), examples


@pytest.mark.filterwarnings("ignore:.*ran out of data", "ignore:.*label\\(\\) is deprecated")
def test_epochs_are_those_of_tf_datas_fit(
    trained: Callable[..., list[list[int]]], tmp_path: Path
) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": LENGTHS}))
    tf_data = pipeline(
        builder,
        "train",
        SETTINGS,
        transform=lambda example: (tf.reshape(tf.cast(example["id"], tf.float32), [1]), [0.0]),
    )
    expected = trained(tf_data, epochs=4)
    assert len(expected) == 20
    for made in counted((loaded, mapped, iterated)):
        dataset, whole = made(SETTINGS)
        assert trained(dataset, epochs=3, callbacks=[fit_epochs(whole)]) == expected[:15]
        late = {"initial_epoch": 2, "epochs": 4, "callbacks": [fit_epochs(whole)]}
        assert trained(dataset, **late) == expected[10:]
        again = made(SETTINGS)[0]  # what the callback is for
        assert trained(again, epochs=2) == expected[:5] * 2


@pytest.mark.filterwarnings("ignore:.*ran out of data")
def test_the_rest_of_an_epoch(trained: Callable[..., list[list[int]]]) -> None:
    of_epoch = {"loop": "keras-fit", "pass_index": 1}
    settings = ReadSettings(**{**vars(SETTINGS), **of_epoch})
    whole = map_dataset(SOURCE, toy(*LENGTHS), "train", settings)
    rest = map_dataset(SOURCE, toy(*LENGTHS), "train", settings, consumed=16)
    late: dict[str, Any] = {"initial_epoch": 1, "epochs": 2}
    found = trained(rest.batch(8), callbacks=[fit_epochs(rest)], **late)
    assert found == trained(whole.batch(8), **late)[2:]
    with pytest.raises(UsageError, match="epoch 2 of fit: the order begins after 16 examples"):
        trained(rest.batch(8), callbacks=[fit_epochs(rest)], initial_epoch=1, epochs=3)


def test_steps_per_epoch_read_one_order_of_all_epochs(
    trained: Callable[..., list[list[int]]],
) -> None:
    settings = ReadSettings(**{**vars(SETTINGS), "epochs": 3})
    sampler = Sampler(toy(*LENGTHS), "train", settings)
    ids = [sampler.order.key(i) for i in range(120)]
    for made in (loaded, mapped):
        dataset, whole = made(settings)
        found = trained(dataset, epochs=3, steps_per_epoch=4)
        assert found == [ids[k : k + 8] for k in range(0, 96, 8)]
        with pytest.raises(UsageError, match="steps_per_epoch: fit then reads one iterator"):
            trained(dataset, epochs=3, steps_per_epoch=4, callbacks=[fit_epochs(whole)])


@pytest.mark.parametrize("wrong", [7, [1], None])
def test_what_has_no_epochs_of_its_own_is_refused(keras: Any, wrong: object) -> None:
    with pytest.raises(UsageError, match=r"dataset: what shardctl\.grain"):
        fit_epochs(wrong)
    examples = map_dataset(SOURCE, toy(*LENGTHS), "train", SETTINGS)
    with pytest.raises(UsageError, match="before Grain's own map, batch"):
        fit_epochs(examples.batch(8))
