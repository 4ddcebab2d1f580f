"""Settings are understood by the names that TFDS, tf.data and Keras have for them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.settings.names import (
    SETTING_BY_ALIAS,
    SHARED_NAMES,
    main_name,
    main_names,
    setting_called,
    which_is_meant,
)
from shardctl.settings.table import SETTING_BY_FIELD, SETTING_BY_NAME, SETTINGS


def test_a_name_is_that_of_one_setting() -> None:
    aliases = [alias for setting in SETTINGS for alias in setting.aliases]
    assert len({*aliases, *SETTING_BY_NAME, *SHARED_NAMES}) == len(aliases) + len(
        SETTING_BY_NAME
    ) + len(SHARED_NAMES)
    assert all(name == name.lower().replace("-", "_") for name in (*aliases, *SHARED_NAMES))
    for fields in SHARED_NAMES.values():
        assert len(fields) > 1
        assert set(fields) <= set(SETTING_BY_FIELD)


def test_every_alias_with_either_sign_is_its_setting() -> None:
    assert SETTING_BY_ALIAS
    for alias, setting in SETTING_BY_ALIAS.items():
        assert setting_called(alias) is setting
        assert setting_called(alias.replace("_", "-")) is setting
        assert main_name(alias) == setting.name
    assert setting_called("seed") is None
    assert setting_called("interleave_cycle_lengt") is None


def test_the_parameters_of_the_libraries_that_are_settings_are_understood() -> None:
    """Each of these is a parameter there today; what it means here is written down by hand."""
    tf = pytest.importorskip("tensorflow")
    tfds = pytest.importorskip("tensorflow_datasets")
    dataset = tf.data.Dataset
    meant: list[tuple[Any, dict[str, str | None]]] = [
        (
            tfds.ReadConfig,
            {
                "interleave_cycle_length": "cycle",
                "interleave_block_length": "block",
                "shuffle_seed": "shuffle_seed",
                "shuffle_reshuffle_each_iteration": "reshuffle",
                "repeat_filenames": "repeat_files",
                "experimental_interleave_sort_fn": None,
            },
        ),
        (tfds.load, {"shuffle_files": "shuffle_files", "batch_size": "batch"}),
        (
            dataset.shuffle,
            {
                "buffer_size": "buffer",
                "seed": None,
                "reshuffle_each_iteration": "buffer_reshuffle",
            },
        ),
        (dataset.interleave, {"cycle_length": "cycle", "block_length": "block"}),
        (dataset.batch, {"batch_size": "batch", "drop_remainder": "drop_remainder"}),
    ]
    for function, names in meant:
        assert set(names) <= set(inspect.signature(function).parameters)
        for name, setting in names.items():
            if setting is None:
                assert name in SHARED_NAMES
            else:
                assert main_name(name) == setting


def test_which_is_meant_is_asked_only_where_several_could_be() -> None:
    said = which_is_meant("seed")
    assert said == "it could be --shuffle-seed, --buffer-seed or --global-seed; say which"
    assert which_is_meant("seed", ["global_seed", "cycle"]) is None
    assert which_is_meant("cycle") is None
    assert which_is_meant("experimental-interleave-sort-fn") is not None


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({}, {}),
        ({"cycle": 3, "block-length": 4}, {"cycle": 3, "block": 4}),
        (
            {"shuffle_buffer": 9, "reshuffle_each_iteration": False},
            {"buffer": 9, "buffer_reshuffle": False},
        ),
        ({"no_such": 3, "No-Such": 4, 7: 8}, {"no_such": 3, "No-Such": 4, "7": 8}),
        # None of TFDS is not its default, which is 16.
        ({"interleave_cycle_length": None}, {"cycle": "auto"}),
        ({"interleave-block-length": None}, {"block": 1}),
        ({"block": None, "epochs": None}, {"block": None, "epochs": None}),
        ({"cycle": None, "batch_size": None}, {"cycle": None, "batch": None}),
    ],
)
def test_main_names(document: dict[Any, object], named: dict[str, object]) -> None:
    assert main_names(document) == named


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"cycle": 3, "cycle_length": 3}, "cycle_length: the same setting as cycle; keep one"),
        ({"batch": None, "batch-size": 3}, "batch-size: the same setting as batch"),
        (
            {"seed": 3},
            "seed: it could be --shuffle-seed, --buffer-seed or --global-seed; say which",
        ),
        ({"repeat": None}, "repeat: none stands for a repeat without end"),
        ({"num-epochs": None}, "num-epochs: none stands for a repeat without end"),
    ],
)
def test_two_of_one_setting_and_one_of_several_are_refused(
    document: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=f"^{message}"):
        main_names(document)


def test_a_block_length_of_none_reads_one_example_at_a_time() -> None:
    """As tf.data has it, which is not the 16 of TFDS where nobody sets it."""
    tf = pytest.importorskip("tensorflow")
    files = tf.data.Dataset.range(2)

    def read(file: Any) -> Any:
        return tf.data.Dataset.range(file * 10, file * 10 + 3)

    real = files.interleave(read, cycle_length=2, block_length=None, num_parallel_calls=2)
    said = files.interleave(
        read, cycle_length=2, block_length=main_names({"block_length": None})["block"]
    )
    assert list(real.as_numpy_iterator()) == list(said.as_numpy_iterator())
