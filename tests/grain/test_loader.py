"""Batches of a DataLoader beside those of the real tf.data pipeline over the TFRecord copy."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl import ReadSettings
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.grain import consumed, data_loader, keep_texts, map_dataset
from shardctl.tfds import pipeline
from tests.cases import FUZZ, counted, random_of_a_fuzz_run
from tests.grain.toys import (
    as_lists,
    handed_out,
    needs_grain,
    raises_in_one_line,
    random_settings,
    toy,
)
from tests.tfds_datasets import build_dataset

LENGTHS = {"train": [9, 0, 14, 7, 11], "test": [5, 8]}
SPECS = ("train", "train", "train[10%:80%]", "train+test", "test+train[7:]", "train[30:]+train[:9]")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A dataset in two formats, of numbers, texts and pictures."""
    import tensorflow_datasets as tfds

    features = tfds.features.FeaturesDict(
        {
            "id": np.int64,
            "text": tfds.features.Text(),
            "pixels": tfds.features.Tensor(shape=(3, 2), dtype=np.float32),
            "weight": np.float32,
            "class": np.uint8,
            "good": np.bool_,
            "box": tfds.features.Sequence(np.float32, length=2),
        }
    )

    def example(i: int) -> dict[str, Any]:
        pixels = np.random.default_rng(i).random((3, 2), np.float32)
        return {"id": i, "text": f"example {i}" + "\0" * (i % 3), "pixels": pixels} | {
            "weight": i / 3,
            "class": i % 250,
            "good": i % 2 == 0,
            "box": [i / 7, 1],
        }

    return {
        form: build_dataset(
            tmp_path_factory.mktemp(form),
            splits=LENGTHS,
            file_format=form,
            features=features,
            example=example,
        )
        for form in ("tfrecord", "array_record")
    }


def in_bytes(elements: Iterable[Any]) -> list[dict[str, Any]]:
    """Return elements with the very bytes of each of their parts."""
    return [
        {
            name: (np.shape(one), np.asarray(one).tolist())
            if np.asarray(one).dtype == object or isinstance(one, bytes)
            else (np.asarray(one).dtype.str, np.shape(one), np.asarray(one).tobytes())
            for name, one in element.items()
        }
        for element in elements
    ]


def builders(folders: dict[str, Path]) -> tuple[Any, Any]:
    import tensorflow_datasets as tfds

    return tuple(
        tfds.builder_from_directory(folders[form]) for form in ("tfrecord", "array_record")
    )


def check_as_tf_data(
    folders: dict[str, Path], spec: str, settings: ReadSettings, workers: Iterable[int]
) -> None:
    tfrecord, array_record = builders(folders)
    dataset = pipeline(tfrecord, spec, settings)
    for _ in range(settings.pass_index + 1):  # each pass is an iteration of one dataset object
        expected = in_bytes(dataset.as_numpy_iterator())
    source = array_record.as_data_source(split=spec)
    for number in workers:
        loader = data_loader(source, array_record, spec, settings, workers=number)
        assert in_bytes(handed_out(loader)) == expected, (spec, settings, number)
    examples = map_dataset(source, tfrecord, spec, settings)
    if settings.batch is not None:
        examples = examples.map(keep_texts).batch(settings.batch)
    assert in_bytes(examples) == expected


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("train", {"shuffle_seed": 5, "buffer": 20, "buffer_seed": 3, "epochs": 2, "batch": 8}),
        ("test+train[7:]", {"cycle": 2, "shuffle_seed": 5, "batch": 7, "drop_remainder": True}),
        ("train", {"shuffle_seed": 2, "host": "1/3", "batch": 4, "epochs": 3, "pass_index": 1}),
        ("train", {"shuffle_seed": 1, "host": "1/3", "host_by": "files", "batch": 50}),
        ("train[10%:]", {"buffer": 9, "buffer_seed": 1, "host": "0/2", "host_by": "examples"}),
    ],
)
def test_batches_are_those_of_tf_data(
    folders: dict[str, Path], spec: str, settings: dict[str, Any]
) -> None:
    needs_grain()
    check_as_tf_data(folders, spec, ReadSettings(**settings), (0, 1, 2, 3))


@pytest.mark.fuzz
def test_batches_of_random_settings_are_those_of_tf_data(folders: dict[str, Path]) -> None:
    needs_grain()
    numbers = random_of_a_fuzz_run()
    num_checked, num_cases = 0, max(5, FUZZ // 20)
    for _ in counted(range(num_cases)):
        spec, settings = numbers.choice(SPECS), random_settings(numbers)
        with contextlib.suppress(UnpredictableOrderError, UsageError):  # more hosts than files
            check_as_tf_data(folders, spec, settings, (0, 2, 3))
            num_checked += 1
    assert num_checked > num_cases // 2


@pytest.mark.fuzz
def test_real_workers_hand_out_the_batches_of_tf_data(folders: dict[str, Path]) -> None:
    needs_grain()
    tfrecord, array_record = builders(folders)
    settings = ReadSettings(shuffle_seed=5, buffer=20, buffer_seed=3, epochs=2, batch=8)
    expected = in_bytes(pipeline(tfrecord, "train", settings).as_numpy_iterator())
    source = array_record.as_data_source(split="train")
    for workers, others in counted([(2, 3), (3, 0)]):
        loader = data_loader(source, array_record, "train", settings, workers=workers)
        iterator = iter(loader)
        head = in_bytes(next(iterator) for _ in range(5))  # in the midst of a round
        state = iterator.get_state()
        assert consumed(state) == 40
        assert head + in_bytes(iterator) == expected
        again = iter(data_loader(source, array_record, "train", settings, workers=workers))
        again.set_state(state)
        assert in_bytes(again) == expected[5:]
        elsewhere = data_loader(
            source, array_record, "train", settings, workers=others, states=[state]
        )
        assert in_bytes(elsewhere) == expected[5:]


def test_grains_own_checkpoints_restore_it_in_mid_epoch(tmp_path: Path) -> None:
    grain = needs_grain()
    ocp = pytest.importorskip("orbax.checkpoint", reason="Orbax is not installed")
    settings = {"shuffle_seed": 3, "batch": 4, "epochs": 2}

    def loader(**given: Any) -> Any:
        return data_loader(list(range(40)), toy(11, 13, 16), "train", settings, **given)

    iterator = iter(loader())
    for _ in range(7):
        next(iterator)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        save = grain.checkpoint.CheckpointSave(iterator)
        manager.save(7, args=ocp.args.Composite(data=save))
        rest = as_lists(iterator, 4)
        again = iter(loader())
        restore = grain.checkpoint.CheckpointRestore(again)
        manager.restore(7, args=ocp.args.Composite(data=restore))
        assert as_lists(again, 4) == rest
        other = iter(data_loader(list(range(40)), toy(11, 13, 16), "train", {"batch": 4}))
        with pytest.raises(ValueError, match="Sampler in checkpoint does not match"):
            manager.restore(
                7, args=ocp.args.Composite(data=grain.checkpoint.CheckpointRestore(other))
            )
    files = list((tmp_path / "run" / "7" / "data").glob("process_*.json"))
    assert [file.name for file in files] == ["process_0-of-1.json"]
    for workers in (0, 3):
        states = [file.read_bytes() for file in files]
        assert as_lists(handed_out(loader(workers=workers, states=states)), 4) == rest


def test_operations_stand_before_and_behind_the_batch() -> None:
    grain = needs_grain()

    class Ten(grain.transforms.Map):  # type: ignore[misc, name-defined]
        def map(self, element: Any) -> Any:
            return element + 10

    class Sum(grain.transforms.Map):  # type: ignore[misc, name-defined]
        def map(self, element: Any) -> Any:
            return element.sum()

    given: dict[str, Any] = {"source": list(range(9)), "dataset": toy(4, 5), "spec": "train"}
    settings = {"cycle": 1, "batch": 4}
    for workers in (0, 2):
        before = data_loader(**given, settings=settings, operations=[Ten()], workers=workers)
        assert as_lists(handed_out(before), 4) == [[10, 11, 12, 13], [14, 15, 16, 17], [18]]
        operations = [Ten(), grain.transforms.Batch(4), Sum()]
        around = data_loader(**given, settings=settings, operations=operations, workers=workers)
        assert as_lists(handed_out(around), None) == [46, 62, 18]


def test_records_of_a_random_map_do_not_depend_on_workers() -> None:
    grain = needs_grain()

    class Noise(grain.transforms.RandomMap):  # type: ignore[misc, name-defined]
        def random_map(self, element: Any, rng: np.random.Generator) -> Any:
            return element + rng.integers(1000)

    found = [
        as_lists(
            handed_out(
                data_loader(
                    list(range(0, 40_000, 1000)),
                    toy(11, 13, 16),
                    "train",
                    {"shuffle_seed": 3, "batch": 4},
                    operations=[Noise()],
                    workers=workers,
                    seed=5,
                )
            ),
            4,
        )
        for workers in (0, 2, 3)
    ]
    assert found[0] == found[1] == found[2]


def test_what_would_make_other_batches_is_refused() -> None:
    grain = needs_grain()
    transforms = grain.transforms

    class Odd(transforms.Filter):  # type: ignore[misc, name-defined]
        def filter(self, element: Any) -> bool:
            return bool(element % 2)

    def refused(
        words: tuple[str, ...], *operations: Any, workers: int = 0, **settings: Any
    ) -> None:
        raises_in_one_line(
            lambda: data_loader(
                list(range(9)),
                toy(4, 5),
                "train",
                {"cycle": 1, **settings},
                operations=operations,
                workers=workers,
            ),
            UsageError,
            *words,
        )

    refused(("Odd with --workers", "workers=0"), Odd(), workers=2, batch=2)
    refused(("list with --workers",), [], workers=2, batch=2)
    refused(("batches of 3", "--batch 3"), transforms.Batch(3))
    refused(("batches of 3, and the settings of 2",), transforms.Batch(3), batch=2)
    refused(("of 2, then of 2",), transforms.Batch(2), transforms.Batch(2), batch=2)
    refused(("drop-remainder",), transforms.Batch(2, drop_remainder=True), batch=2)
    odd = data_loader(
        list(range(9)), toy(4, 5), "train", {"cycle": 1, "batch": 2}, operations=[Odd()]
    )
    assert as_lists(odd, 2) == [[1, 3], [5, 7]]
    with pytest.raises(DatasetError, match="source has 8 records"):
        data_loader(list(range(8)), toy(4, 5))


def test_batches_larger_than_the_data_are_one() -> None:
    needs_grain()
    source, numbers = list(range(9)), random.Random(1)
    for workers in (0, 2, 3):
        settings = {"cycle": 1, "batch": numbers.choice([9, 10, 1000])}
        loader = data_loader(source, toy(4, 5), "train", settings, workers=workers)
        assert as_lists(handed_out(loader), 9) == [source]
