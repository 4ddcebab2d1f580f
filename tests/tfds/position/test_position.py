"""Positions: what is counted, what is in the file, and what is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError, MissingDependencyError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.spec.host import Host
from tests.order.order_cases import changed
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(
    cycle=2, block=2, shuffle_seed=5, buffer=5, buffer_seed=1, epochs=2, batch=4
)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_a_run_in_pieces_sees_what_one_run_sees(builder: Any, tmp_path: Path) -> None:
    whole = ids(shardctl.tfds.pipeline(builder, "train", SETTINGS))
    file, seen = tmp_path / "position.json", list[int]()
    for num_steps in (3, 9):
        position = shardctl.tfds.Position(builder, "train", SETTINGS)
        if file.exists():
            position.restore(file)
        for step, batch in enumerate(position.count(position.dataset())):
            seen += ids([batch])
            assert position.consumed == len(seen)
            position.save(file)
            if step + 1 == num_steps:
                break  # what was read ahead is not counted
    assert seen == whole
    assert position.consumed == position.num_examples == len(whole) == 34
    assert ids(position.dataset()) == []


def test_batches_behind_the_settings_are_counted_by_their_rows(builder: Any) -> None:
    settings = changed(SETTINGS, batch=None)
    position = shardctl.tfds.Position(builder, "train", settings)
    counts = [position.consumed for _ in position.count(position.dataset().batch(5), batch=5)]
    assert counts == [5, 10, 15, 20, 25, 30, 34]
    position = shardctl.tfds.Position(builder, "train", settings)
    assert [position.consumed for _ in position.count(position.dataset())] == [*range(1, 35)]


def test_without_settings_it_reads_as_tfds_does(builder: Any) -> None:
    position = shardctl.tfds.Position(builder, "train")
    read = [int(example["id"]) for example in builder.as_dataset(split="train").as_numpy_iterator()]
    assert [int(example["id"]) for example in position.dataset().as_numpy_iterator()] == read
    assert position.num_examples == len(read)
    assert position.settings.batch is None


def test_more_than_the_order_has_is_refused(builder: Any) -> None:
    position = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=30)
    with pytest.raises(UsageError, match="5 examples after 30: the order of train has 34"):
        position.advance(5)
    with pytest.raises(UsageError, match="a batch of 7 examples where batches of 4 are counted"):
        next(position.count(iter([{"id": range_of(7)}])))
    with pytest.raises(UsageError, match="has 34"):
        shardctl.tfds.Position(builder, "train", SETTINGS, consumed=35)
    assert position.consumed == 30


def range_of(count: int) -> Any:
    import numpy as np

    return np.arange(count)


def test_a_state_is_the_text_of_the_file_and_taken_like_it(builder: Any, tmp_path: Path) -> None:
    file = tmp_path / "position.json"
    position = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=8)
    position.save(file)
    assert position.get_state() == file.read_bytes()
    other = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=4)
    state = position.get_state()
    for broken, message in (
        (state.replace(b'"consumed": 8', b'"consumed": 9'), "the state: .* match its digest"),
        (state[:100], "the state: line .* is not JSON"),
        (b"", "the state"),
        (b"{}", "this is not a position, .*get_state returns one"),
        (state.replace(b'"format_version": 1', b'"format_version": 3'), "of version 1 and 2"),
    ):
        with pytest.raises(DatasetError, match=message):
            other.set_state(broken)
        assert other.consumed == 4
    given: Any = bytearray(state)
    other.set_state(given)
    assert other.consumed == 8
    assert other.get_state() == state


def test_a_state_past_the_end_changes_nothing(builder: Any) -> None:
    from shardctl.saved.position_file import position_of_text, position_text

    position = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=4)
    record = position_of_text(position.get_state(), source="it")
    with pytest.raises(UsageError, match="is after 35 examples: the order of train has 34"):
        position.set_state(position_text(replace(record, consumed=35)))
    assert position.consumed == 4


def test_a_file_that_cannot_be_written_leaves_nothing_behind(builder: Any, tmp_path: Path) -> None:
    position = shardctl.tfds.Position(builder, "train", SETTINGS)
    with pytest.raises(UsageError, match="cannot write the position"):
        position.save(tmp_path / "missing" / "position.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="cannot write the position"):
        position.save(tmp_path / "taken")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.long
def test_importing_the_bridge_loads_no_tensorflow() -> None:
    code = (
        "import sys, shardctl.tfds\n"
        "print([m for m in sys.modules if m.partition('.')[0].startswith('tensorflow')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_a_missing_package_is_named_with_what_installs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    from shardctl.metadata.tfds_metadata import read_tfds_folder
    from shardctl.verbs.resume.answer import resume

    monkeypatch.setitem(sys.modules, module, None)
    plan = resume(read_tfds_folder(folder), consumed=3)
    with pytest.raises(MissingDependencyError, match="install it with: pip install "):
        shardctl.tfds.read_config(plan)


def test_every_public_name_says_what_it_does() -> None:
    for name in shardctl.tfds.__all__:
        assert getattr(shardctl.tfds, name).__doc__, name
    assert sorted(shardctl.tfds.__all__) == shardctl.tfds.__all__


def test_help_lists_every_public_name() -> None:
    text = shardctl.tfds.__doc__ or ""
    for name in shardctl.tfds.__all__:
        assert re.search(rf"^    {name}\(", text, re.M) or name in ("Host", "ReadSettings"), name
    assert max(map(len, text.splitlines())) <= 100


def test_a_position_written_before_is_restored_wherever_the_files_lie(
    tfds: Any, tmp_path: Path
) -> None:
    before = Path(__file__).parents[2] / "saved" / "written_before"
    splits = {"train": [4, 0, 7, 6], "test": [3, 2]}
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits=splits))
    position = shardctl.tfds.Position(builder, "train", SETTINGS)
    position.restore(before / "buffered.position.json")
    assert position.consumed == 12
    with pytest.raises(DatasetError, match="its name was steps, now toy; its config was c"):
        position.restore(before / "ordered.position.json")
    host = Host(index=1, count=3)
    settings = changed(SETTINGS, buffer=3, batch=2, host=host, host_by="even")
    of_host = shardctl.tfds.Position(builder, "train", settings)
    of_host.restore(before / "host.position.json")
    assert of_host.consumed == 6
    for other in (Host(index=0, count=3), Host(index=1, count=2), None):
        position = shardctl.tfds.Position(builder, "train", changed(settings, host=other))
        with pytest.raises(UsageError, match=f"host was 1/3, now {other}"):
            position.restore(before / "host.position.json")
    stages = "read(train) | shuffle(5, seed=1) | repeat(2) | batch(4)"
    settings = as_settings({"stages": stages, "shuffle_seed": 5, "global_seed": 9})
    staged = shardctl.tfds.Position(builder, None, settings)
    staged.set_state((before / "staged.position.json").read_bytes())
    assert staged.consumed == 8
    elements = plan_order(shardctl.tfds.dataset_of(builder), None, settings).order.read(8, 12)
    assert len(next(iter(staged.dataset()))["id"]) == len(elements) == 4


def test_what_the_files_may_not_keep_is_said(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    position = "shardctl.tfds.position.dataset_of"
    train = Split(name="train", shard_lengths=(214,))
    parquet = Dataset(name="d", splits=(train,), file_format="parquet")
    monkeypatch.setattr(position, lambda _: parquet)
    with pytest.warns(UserWarning, match="a file of 214 examples holds 114 rows"):
        shardctl.tfds.Position(builder, "train")
    monkeypatch.setattr(position, lambda _: replace(parquet, file_format="array_record"))
    with pytest.raises(DatasetError, match="as_dataset does not read array_record files"):
        shardctl.tfds.Position(builder, "train")
