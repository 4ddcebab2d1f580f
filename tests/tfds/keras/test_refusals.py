"""What `fit` may be given besides `position.dataset()`, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.errors import UsageError
from tests.fit_runs import SETTINGS, pair, recording
from tests.order.order_cases import changed


def fit(builder: Any, folder: Path, of: Any, settings: Any = SETTINGS, **compiled: Any) -> Any:
    """Return the batches that `fit` trains on, of what `of` makes of the position's dataset."""
    import keras

    log: list[tuple[int, list[int]]] = []
    position = shardctl.tfds.Position(builder, "train", settings)
    recording(log, **compiled).fit(
        of(position.dataset(transform=pair)),
        epochs=2,
        verbose=0,
        shuffle=False,
        callbacks=[keras.callbacks.BackupAndRestore(folder), shardctl.tfds.ResumeFit(position)],
    )
    return dict(log)


@pytest.mark.slow
def test_maps_and_prefetch_behind_the_dataset_leave_the_batches(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    plain = fit(builder, tmp_path, lambda dataset: dataset)
    assert len(plain) == 8
    assert plain == fit(
        builder,
        tmp_path,
        lambda dataset: dataset.map(lambda x, y: (x, 2 * y), tf.data.AUTOTUNE).prefetch(2),
    )


@pytest.mark.parametrize(
    ("of", "kind"),
    [
        (lambda dataset: dataset.shuffle(9), "ShuffleDataset"),
        (lambda dataset: dataset.cache().prefetch(1), "CacheDataset"),
        (lambda dataset: dataset.unbatch().batch(2), "ParallelBatchDataset|BatchDataset"),
        (lambda dataset: dataset.take(2), "TakeDataset"),
    ],
)
def test_other_calls_behind_the_dataset_are_refused(
    builder: Any, tmp_path: Path, of: Any, kind: str
) -> None:
    with pytest.raises(UsageError, match=f"fit reads a ({kind}) that is not position.dataset"):
        fit(builder, tmp_path, of)


def test_a_map_in_any_order_is_refused(tf: Any, builder: Any, tmp_path: Path) -> None:
    options = tf.data.Options()
    options.deterministic = False
    for of in (
        lambda dataset: dataset.map(lambda *x: x, 2, deterministic=False),
        lambda dataset: dataset.map(lambda *x: x, 2).with_options(options),
    ):
        with pytest.raises(UsageError, match="without deterministic=False"):
            fit(builder, tmp_path, of)


def test_the_dataset_of_another_position_is_refused(builder: Any, tmp_path: Path) -> None:
    other = shardctl.tfds.Position(builder, "train", SETTINGS)
    with pytest.raises(UsageError, match=r"is not position.dataset\(\)"):
        fit(builder, tmp_path, lambda _: other.dataset(transform=pair))


def test_settings_that_are_not_those_of_fit_are_refused(builder: Any, tmp_path: Path) -> None:
    for settings, message in (
        (changed(SETTINGS, batch=None), "fit trains on batches"),
        (changed(SETTINGS, pass_index=1), "the epochs of fit count the passes"),
    ):
        with pytest.raises(UsageError, match=message):
            fit(builder, tmp_path, lambda dataset: dataset, settings)
    with pytest.raises(UsageError, match="steps_per_execution=2"):
        fit(builder, tmp_path, lambda dataset: dataset, steps_per_execution=2, run_eagerly=False)


@pytest.mark.slow
def test_fit_in_a_strategy_of_one_process_is_resumed(tf: Any, builder: Any, tmp_path: Path) -> None:
    plain = fit(builder, tmp_path, lambda dataset: dataset)
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert fit(builder, tmp_path, lambda dataset: dataset) == plain
