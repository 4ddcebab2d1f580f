"""A position is refused in any other order than its own, each thing that changed by its name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.spec.host import Host
from shardctl.tfds import Position, dataset_of
from tests.cases import add_cases
from tests.golden import values
from tests.order.order_cases import changed
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(
    cycle=2,
    block=2,
    shuffle_seed=5,
    buffer=5,
    buffer_seed=1,
    epochs=2,
    batch=4,
    host=Host(index=0, count=2),
)
SHARDS = [f"toy-train.tfrecord-0000{shard}-of-00004" for shard in (0, 1, 2, 3)]

OTHERS: dict[str, list[dict[str, Any]]] = values(Path(__file__).with_name("others.txt"), globals())


def position_of(builder: Any, settings: ReadSettings, **how: Any) -> Any:
    return Position(builder, None if settings.stages else "train", settings, **how)


def test_every_setting_that_changed_is_named(builder: Any) -> None:
    of_tfds = {setting.field for setting in SETTING_BY_FIELD.values() if setting.about != "loader"}
    assert set(OTHERS) == of_tfds
    state = position_of(builder, SETTINGS, consumed=8).get_state()
    num_cases = 0
    for name, others in OTHERS.items():
        for value in others:
            settings = changed(SETTINGS, **value)
            other = position_of(builder, settings, consumed=4)
            option = SETTING_BY_FIELD[name].name
            with pytest.raises(UsageError, match=rf"another order: .*\b{option} was .*, now "):
                other.set_state(state)
            assert other.consumed == 4
            back = position_of(builder, SETTINGS, consumed=4)
            num_cases += 1
            if name == "loop":  # a place in an epoch of fit, which ResumeFit goes to
                back.set_state(other.get_state())
                assert (back.epoch_of_fit, back.num_examples) == (0, other.num_examples)
                continue
            with pytest.raises(UsageError, match=rf"another order: .*\b{option} was .*, now "):
                back.set_state(other.get_state())
            assert back.consumed == 4
            num_cases += 1
    add_cases(num_cases)


def test_settings_that_mean_the_same_are_taken(builder: Any) -> None:
    """And they do: the orders are the same, example by example."""
    settings = changed(SETTINGS, cycle=4, host=None)
    state = position_of(builder, settings, consumed=8).get_state()
    expected = plan_order(dataset_of(builder), "train", settings).order.read(0, 34).tolist()
    for value in (
        {"cycle": "auto", "cpus": 12},
        {"cycle": "auto", "cpus": 11},
        {"shuffle_files": True},
        {"reshuffle": True},
        {"buffer_reshuffle": True},
    ):
        same = changed(settings, **value)
        position = position_of(builder, same)
        position.set_state(state)
        assert position.consumed == 8
        found = plan_order(dataset_of(builder), "train", same).order.read(0, 34).tolist()
        assert found == expected


def test_what_is_meant_to_change_has_a_way_out(builder: Any) -> None:
    state = position_of(builder, SETTINGS, consumed=8).get_state()
    longer = changed(SETTINGS, epochs=3)
    message = r"epochs was 2, now 3; where that is meant, .* consumed=8$"
    with pytest.raises(UsageError, match=message):
        position_of(builder, longer).set_state(state)
    order = [
        plan_order(dataset_of(builder), "train", settings).order.read(0, 16).tolist()
        for settings in (SETTINGS, longer)
    ]
    assert order[0] == order[1]
    assert position_of(builder, longer, consumed=8).consumed == 8


def test_another_spec_format_or_dataset_is_named(tfds: Any, builder: Any, tmp_path: Path) -> None:
    settings = changed(SETTINGS, host=None)
    state = position_of(builder, settings, consumed=8).get_state()
    with pytest.raises(UsageError, match=r"spec was train, now train\[:50%\]; give those"):
        Position(builder, "train[:50%]", settings).set_state(state)
    lengths = {"train": [4, 0, 7, 6]}
    others: tuple[tuple[str, dict[str, Any]], ...] = (
        ("its name was toy, now other", {"name": "other"}),
        ("its version was 1.0.0, now 1.1.0", {"version": "1.1.0"}),
        ("its config was none, now c", {"config": "c"}),
        ("its file format was tfrecord, now parquet", {"file_format": "parquet"}),
        ("disable_shuffling.* was false, now true", {"disable_shuffling": True}),
        ("train was 17 examples in 4 shards, now 18 examples", {"splits": {"train": [4, 0, 7, 7]}}),
        ("the lengths .* changed, the totals did not", {"splits": {"train": [4, 1, 6, 6]}}),
        ("its split test was none, now 2 examples", {"splits": {**lengths, "test": [2]}}),
        ("file name template of train", {"template": "{SPLIT}_{SHARD_X_OF_Y}.{FILEFORMAT}"}),
    )
    for words, how in others:
        path = tmp_path / words[:9].replace(" ", "-") / str(len(words))
        where = build_dataset(path, **{"splits": lengths, "with_files": False, **how})
        other = tfds.builder_from_directory(where)
        own = settings if "disable_shuffling" not in how else ReadSettings()
        position = Position(other, "train", own, consumed=1)
        with pytest.raises(DatasetError, match=words):
            position.set_state(state)
        assert position.consumed == 1


def test_a_source_of_a_mixture_that_changed_is_named(tmp_path: Path, builder: Any) -> None:
    other = build_dataset(tmp_path, "other", {"train": [4, 3]})
    mixture = f"sample_from_datasets([train, read(train, data='{other}')], seed=1)"
    settings = as_settings({"stages": mixture})
    state = Position(builder, None, settings, consumed=3).get_state()
    again = Position(builder, None, settings)
    again.set_state(state)
    assert again.consumed == 3
    build_dataset(tmp_path, "other", {"train": [4, 4]})
    grown = Position(builder, None, settings, consumed=1)
    with pytest.raises(DatasetError, match=r"other:1.0.0: .* was 7 examples .*, now 8 examples"):
        grown.set_state(state)
    assert grown.consumed == 1
