"""The real reader beside the prediction: they agree, unless the files are not as they should."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.planning.verify as limits
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import DatasetError, MissingDependencyError, UnpredictableOrderError
from shardctl.planning.resume.hosts import resume_on_hosts
from shardctl.planning.resume.resume import resume
from shardctl.planning.resume.seen import resume_unseen
from shardctl.planning.verify import Verification
from shardctl.readers.catalog import catalog_dataset
from shardctl.readers.tfds_metadata import read_tfds_folder
from shardctl.tfds.verifying.index_ranges import IndexRanges
from shardctl.tfds.verifying.real_files import RealFiles
from shardctl.tfds.verifying.verify import verify
from shardctl.tfds.verifying.verify_plan import verify_plan
from tests.core.order.order_cases import changed
from tests.core.order.test_order_tfds import (  # noqa: F401  # pytest finds the fixture by its name
    Case,
    Toys,
    cases,
    predicted,
    toys,
)
from tests.planning.resume.test_resume_tfds import stopping_points, stops
from tests.strategies import NUM_FUZZ, Recorder, count_cases
from tests.tfds_datasets import build_dataset


@pytest.fixture(autouse=True)
def no_global_seed() -> Iterator[None]:
    import tensorflow as tf

    yield
    tf.random.set_seed(None)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Budgets so small that a toy is read in windows."""
    monkeypatch.setattr(limits, "NUM_WINDOWS", 3)
    monkeypatch.setitem(limits.BUDGETS, "files", 12)
    monkeypatch.setitem(limits.BUDGETS, "index ranges", 36)


def settings_of(toys: Toys, case: Case) -> ReadSettings:  # noqa: F811
    """Return the settings of a case, with an order of the files where it asks for one."""
    if case.file_order is None or case.toy == "several":  # there files share their names
        return case.settings
    splits = toys[case.toy].dataset.splits
    names = [name for split in splits for name in split.filenames]
    random.Random(case.file_order).shuffle(names)
    return changed(case.settings, file_order=tuple(names))


def check_agrees(toys: Toys, case: Case, pass_index: int, take: Any = None) -> Verification | None:  # noqa: F811
    """Verify a pass of a pipeline whose files are as they say, by files and by index ranges."""
    toy = toys[case.toy]
    settings = settings_of(toys, case)
    if not settings.repeat_files:
        settings = changed(settings, pass_index=pass_index)
    order = predicted(toy, case, settings)
    if order is None:
        return None
    found = verify(toy.dataset, case.spec, settings, take=take)
    assert found.equal, (case, pass_index, found.first_difference, found.files)
    assert found.read == "files"
    assert found.num_files == len({*zip(order.reads.split, order.reads.shard, strict=True)})
    nowhere = replace(toy.dataset, splits=tuple(map(without_folder, toy.dataset.splits)))
    over_ranges = verify(nowhere, case.spec, settings, take=take)
    assert over_ranges.equal, (case, pass_index, over_ranges.first_difference)
    assert (over_ranges.read, over_ranges.num_files) == ("index ranges", 0)
    return found


def without_folder(split: Split) -> Split:
    return replace(split, files=tuple(replace(part, data_dir=None) for part in split.files))


def test_every_order_agrees_with_the_real_reader(
    toys: Toys,  # noqa: F811
    record_property: Recorder,
) -> None:
    num_passes = 0

    def law(case: Case) -> None:
        nonlocal num_passes
        found = check_agrees(toys, case, num_passes % 3)
        num_passes += found is not None
        if found is not None and found.num_examples:
            assert [(w.start, w.stop) for w in found.windows] == [(0, found.num_examples)]

    count_cases(cases(), law, 14)
    record_property("cases", num_passes)


@pytest.mark.usefixtures("small")
def test_windows_of_an_order_agree_with_the_real_reader(
    toys: Toys,  # noqa: F811
    record_property: Recorder,
) -> None:
    num_windows = num_cases = 0

    def law(case: Case) -> None:
        nonlocal num_windows, num_cases
        found = check_agrees(toys, case, num_cases % 2)
        num_cases += 1
        if found is not None:
            num_windows += sum(window.start > 0 for window in found.windows)

    count_cases(cases(), law, 10)
    assert num_windows >= 10
    record_property("cases", num_cases)


@pytest.mark.fuzz
@pytest.mark.parametrize("windows", [False, True])
def test_verify_fuzzed(
    toys: Toys,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    record_property: Recorder,
    windows: bool,
) -> None:
    if windows:
        monkeypatch.setitem(limits.BUDGETS, "files", 24)
        monkeypatch.setitem(limits.BUDGETS, "index ranges", 72)
    num_cases = 0

    def law(case: Case) -> None:
        nonlocal num_cases
        num_cases += 1
        check_agrees(toys, case, num_cases % 3)

    count_cases(cases(), law, NUM_FUZZ // 8, fuzz=True)
    record_property("cases", num_cases)


def other_reader(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, **other: Any) -> None:
    """Let the real thing read with other settings than those that are predicted."""
    real = getattr(kind, method)

    def read(self: Any, given: Any) -> Any:
        if isinstance(given, ReadSettings):
            return real(self, changed(given, **other))
        return real(self, replace(given, settings=changed(given.settings, **other)))

    monkeypatch.setattr(kind, method, read)


@pytest.mark.parametrize("kind", [RealFiles, IndexRanges])
def test_a_reader_with_another_block_length_is_caught_where_it_parts(
    toys: Toys,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    kind: Any,
) -> None:
    dataset = toys["plain"].dataset
    if kind is IndexRanges:
        dataset = replace(dataset, splits=tuple(map(without_folder, dataset.splits)))
    other_reader(monkeypatch, kind, "pipeline", block=3)
    found = verify(dataset, "train", ReadSettings(cycle=2, block=4))
    first = found.first_difference
    assert first is not None
    # Shards of 3, 0, 5, .. examples: after 0 1 2, 3 4 5 6 the first slot opens the next shard,
    # which begins with 8. By blocks of 3 it yields nothing after 0 1 2, 3 4 5, since 3 examples
    # fill a block: 6 7.
    assert (first.position, first.expected, first.found) == (7, 8, 7)
    assert first.expected_tfds_id == "toy-train.tfrecord-00003-of-00007__0"
    assert first.found_tfds_id == "toy-train.tfrecord-00002-of-00007__4"
    assert (found.equal, first.reason) == (False, None)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("buffer", [None, 2])
def test_a_window_that_is_read_otherwise_is_caught(
    toys: Toys,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    buffer: int | None,
) -> None:
    other_reader(monkeypatch, RealFiles, "planned", block=1)
    settings = ReadSettings(cycle=2, block=3, buffer=buffer)
    if buffer is not None:
        settings = changed(settings, buffer_seed=1)
    found = verify(toys["plain"].dataset, "train", settings)
    first = found.first_difference
    assert first is not None
    assert first.position >= 12 // 3
    assert first.read == "files"


def tampered(toys: Toys, tmp_path: Path, name: str = "plain") -> Path:  # noqa: F811
    """Return a folder with a copy of a toy."""
    return Path(shutil.copytree(toys[name].dataset.data_dir or "", tmp_path / "copy"))


def test_shards_that_changed_places_are_found(toys: Toys, tmp_path: Path) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path)
    names = [f"toy-train.tfrecord-0000{shard}-of-00007" for shard in (2, 3)]
    (folder / names[0]).rename(folder / "aside")
    (folder / names[1]).rename(folder / names[0])
    (folder / "aside").rename(folder / names[1])
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1))
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected) == (8, 8)  # 3 and 5 examples come before
    assert first.found == f"{names[0]}__5"
    assert [(f.filename, f.expected, f.found) for f in found.files] == [
        (names[0], 5, 17),
        (names[1], 17, 5),
    ]


def test_metadata_that_states_another_length_is_found(
    toys: Toys,  # noqa: F811
    tmp_path: Path,
) -> None:
    # The third shard holds ids 3 to 7. One example more is stated than comes, or one less.
    for stated, position, expected, found_name in [
        (6, 8, 8, "toy-train.tfrecord-00003-of-00007__0"),
        (4, 7, 7, "toy-train.tfrecord-00002-of-00007__4"),
    ]:
        folder = tampered(toys, tmp_path / str(stated))
        info = folder / "dataset_info.json"
        text = info.read_text()
        assert '"5"' in text
        info.write_text(text.replace('"5"', f'"{stated}"', 1))
        found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1))
        first = found.first_difference
        assert first is not None
        assert (first.position, first.expected) == (position, expected)
        assert first.found_tfds_id == found_name
        assert [(f.expected, f.found) for f in found.files] == [(stated, 5)]


@pytest.mark.parametrize("name", ["plain", "parquet"])
def test_a_file_that_is_missing_is_found(toys: Toys, tmp_path: Path, name: str) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path, name)
    file = next(folder.glob("toy-train*-00003-of-00007"))
    file.unlink()
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1))
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected, first.found) == (8, 8, None)
    assert file.name in (first.reason or "")
    assert [(f.filename, f.found, f.reason) for f in found.files] == [(file.name, None, "missing")]


def test_a_file_that_is_cut_off_is_found(toys: Toys, tmp_path: Path) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path)
    file = folder / "toy-train.tfrecord-00003-of-00007"
    file.write_bytes(file.read_bytes()[:-3])
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1, batch=4))
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected, first.found) == (8 + 16, 24, None)
    assert "truncated" in (first.reason or "")
    assert [(f.expected, f.found) for f in found.files] == [(17, 16)]


@pytest.mark.usefixtures("small")
def test_a_bad_file_beyond_the_windows_is_counted(toys: Toys, tmp_path: Path) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path)
    (folder / "toy-train.tfrecord-00006-of-00007").write_bytes(b"")
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1), take=3)
    assert [(f.expected, f.found) for f in found.files] == [(33, 0)]
    assert not found.equal


def test_a_format_without_tf_data_is_counted_beside_index_ranges(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 0, 5]}, file_format="array_record")
    found = verify(read_tfds_folder(folder))
    assert (found.equal, found.read, found.num_files) == (True, "index ranges", 2)
    assert "as_data_source alone" in found.notes[0]
    files = sorted(folder.glob("toy-train*"))
    shutil.copy(files[2], files[0])
    found = verify(read_tfds_folder(folder))
    assert [(f.expected, f.found) for f in found.files] == [(3, 5)]
    assert (found.first_difference, found.equal) == (None, False)


def test_windows_of_imagenet_over_index_ranges() -> None:
    dataset = catalog_dataset("imagenet2012")
    assert dataset is not None
    found = verify(dataset, None, ReadSettings(shuffle_seed=32), take=50_000)
    assert (found.equal, found.num_checked, len(found.windows)) == (True, 50_000, 10)
    assert found.notes[0].startswith("the files of imagenet2012:5.1.0 are not on this machine")


def test_a_host_without_examples_has_nothing_that_differs(toys: Toys) -> None:  # noqa: F811
    settings = ReadSettings(host=Host(index=8, count=9))
    found = verify(toys["plain"].dataset, "extra", settings)
    assert (found.equal, found.num_checked, found.num_files) == (True, 0, 0)


def test_later_epochs_of_keras_fit_agree(toys: Toys) -> None:  # noqa: F811
    settings = ReadSettings(shuffle_seed=3, cycle=2, batch=7, loop="keras-fit", pass_index=2)
    found = verify(toys["plain"].dataset, "train", settings)
    assert (found.equal, found.num_checked) == (True, 75)
    # In a Python loop the third pass has another order, so the two are not taken for one another.
    other = changed(settings, loop="python")
    dataset, spec = toys["plain"].dataset, "train"
    order = predicted(toys["plain"], Case(toy="plain", spec=spec, settings=other), other)
    fitted = predicted(toys["plain"], Case(toy="plain", spec=spec, settings=settings), settings)
    assert order is not None
    assert fitted is not None
    assert order.read(0, 75).tolist() != fitted.read(0, 75).tolist()
    assert verify(dataset, spec, other).equal


@pytest.mark.usefixtures("small")
def test_a_buffer_that_takes_long_to_fill_is_left_to_index_ranges(
    toys: Toys,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(limits.BUDGETS, "index ranges", 120)
    settings = ReadSettings(buffer=60, buffer_seed=1)
    found = verify(toys["plain"].dataset, "train", settings, take=6)
    assert found.equal
    assert found.windows[0].read == "index ranges"
    assert all(w.start for w in found.windows if w.read == "files")
    assert any("the buffer takes 60 examples" in note for note in found.notes)
    everything = verify(toys["plain"].dataset, "train", settings, take="all")
    assert [(w.start, w.stop, w.read) for w in everything.windows] == [(0, 75, "files")]


def test_what_tfds_cannot_open_is_trouble(toys: Toys, tmp_path: Path) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path)
    (folder / "features.json").write_text("{}")
    with pytest.raises(DatasetError, match="TFDS cannot open"):
        verify(read_tfds_folder(folder), "train")


def test_an_order_that_nothing_predicts_is_refused(toys: Toys) -> None:  # noqa: F811
    with pytest.raises(UnpredictableOrderError):
        verify(toys["plain"].dataset, "train", ReadSettings(shuffle_files=True))


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_what_is_not_installed_is_named(
    toys: Toys,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    module: str,
) -> None:
    import sys

    hidden: Any = None
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, hidden)
    with pytest.raises(MissingDependencyError, match="pip install 'shardctl"):
        verify(toys["plain"].dataset, "train")
    if module == "tensorflow_datasets":  # index ranges do without
        layout = Dataset(name="d", splits=(Split(name="train", shard_lengths=(3, 4)),))
        assert verify(layout, "train", ReadSettings(cycle=2, block=1)).equal


def check_plan(toys: Toys, case: Case, numbers: list[int]) -> int:  # noqa: F811
    toy = toys[case.toy]
    settings = settings_of(toys, case)
    order = predicted(toy, case, settings)
    if order is None:
        return 0
    places = stopping_points(order, numbers)[:2]
    nowhere = replace(toy.dataset, splits=tuple(map(without_folder, toy.dataset.splits)))
    for index, place in enumerate(places):
        mode: Any = ("exactly-once", "exact-order")[(index + numbers[0]) % 2]
        plan = resume(toy.dataset, case.spec, settings, consumed=place, mode=mode)
        found = verify_plan(toy.dataset, plan)
        assert found.equal, (case, place, mode, found.first_difference)
        assert verify_plan(nowhere, plan).equal, (case, place, mode)
    return len(places)


@pytest.mark.parametrize("buffered", [False, True])
def test_a_plan_goes_on_as_the_order_does(
    toys: Toys,  # noqa: F811
    buffered: bool,
    record_property: Recorder,
) -> None:
    num_plans = 0

    def law(drawn: tuple[Case, list[int]]) -> None:
        nonlocal num_plans
        num_plans += check_plan(toys, *drawn)

    count_cases(stops(buffered=buffered), law, 4)
    record_property("cases", num_plans)


def test_plans_for_other_hosts_and_of_logs_are_read_example_by_example(toys: Toys) -> None:  # noqa: F811
    dataset = toys["plain"].dataset
    settings = ReadSettings(shuffle_seed=7, cycle=2)
    dealt = resume_on_hosts(dataset, "train", settings, hosts=2, to_hosts=3, consumed=[9, 20])
    found = verify_plan(dataset, dealt)
    assert found.equal
    assert [window.host for window in found.windows] == ["0/3", "1/3", "2/3"]
    assert found.num_checked == 75 - 29
    unseen = resume_unseen(dataset, "train", settings, seen=[3, 9, 74])
    found = verify_plan(dataset, unseen)
    assert (found.equal, found.num_checked) == (True, 72)


def test_a_plan_whose_files_changed_is_caught(toys: Toys, tmp_path: Path) -> None:  # noqa: F811
    folder = tampered(toys, tmp_path)
    dataset = read_tfds_folder(folder)
    plan = resume(dataset, "train", ReadSettings(cycle=1), consumed=5)
    (folder / "toy-train.tfrecord-00003-of-00007").write_bytes(b"")
    found = verify_plan(dataset, plan)
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected, first.found) == (8, 8, 25)
    assert [(f.expected, f.found) for f in found.files] == [(17, 0)]
