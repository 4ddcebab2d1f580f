"""Batches of a DataLoader beside those of the real tf.data pipeline over the TFRecord copy."""

from __future__ import annotations

import contextlib
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
    SPECS,
    as_lists,
    handed_out,
    in_two_formats,
    needs_grain,
    random_settings,
    toy,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return in_two_formats(tmp_path_factory)


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
    assert num_checked > num_cases // 2 or FUZZ < 100  # of a few random ones nobody knows


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

    given: dict[str, Any] = {"spec": "train", "settings": {"shuffle_seed": 3, "batch": 4}}
    given |= {"operations": [Noise()], "seed": 5}
    source = list(range(0, 40_000, 1000))
    loaders = [data_loader(source, toy(11, 13, 16), workers=w, **given) for w in (0, 2, 3)]
    found = [as_lists(handed_out(loader), 4) for loader in loaders]
    assert found[0] == found[1] == found[2]


def test_what_would_make_other_batches_is_refused() -> None:
    grain = needs_grain()
    transforms = grain.transforms

    class Odd(transforms.Filter):  # type: ignore[misc, name-defined]
        def filter(self, element: Any) -> bool:
            return bool(element % 2)

    batch = transforms.Batch
    refused: list[tuple[list[Any], dict[str, Any], int, str]] = [
        ([Odd()], {"batch": 2}, 2, "Odd with --workers: .* workers=0"),
        ([[]], {"batch": 2}, 2, "list is no transformation of Grain"),
        ([3], {}, 0, "int is no transformation of Grain"),
        ([batch(3)], {}, 0, "batches of 3.*--batch 3"),
        ([batch(3)], {"batch": 2}, 0, "batches of 3, and the settings of 2"),
        ([batch(2), batch(2)], {"batch": 2}, 0, "of 2, then of 2"),
        ([batch(2, drop_remainder=True)], {"batch": 2}, 0, "drop-remainder"),
    ]
    source, data = list(range(9)), toy(4, 5)
    for operations, settings, workers, words in refused:
        given: dict[str, Any] = {"operations": operations, "workers": workers}
        with pytest.raises(UsageError, match=words):
            data_loader(source, data, "train", {"cycle": 1, **settings}, **given)
    odd = data_loader(source, data, "train", {"cycle": 1, "batch": 2}, operations=[Odd()])
    assert as_lists(odd, 2) == [[1, 3], [5, 7]]
    with pytest.raises(DatasetError, match="source has 8 records"):
        data_loader(source[:8], data)


def test_batches_larger_than_the_data_are_one() -> None:
    needs_grain()
    source = list(range(9))
    for workers, batch in ((0, 9), (2, 10), (3, 1000)):
        settings = {"cycle": 1, "batch": batch}
        loader = data_loader(source, toy(4, 5), "train", settings, workers=workers)
        assert as_lists(handed_out(loader), 9) == [source]
