"""The real reader beside the prediction: they agree, unless the files are not as they should."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl.verbs.verify.answer as limits
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import MissingDependencyError, UnpredictableOrderError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds.verifying.real_files import IndexRanges, RealFiles
from shardctl.tfds.verifying.verify import verify
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed
from tests.order.toy_pipelines import Case, Toys, cases
from tests.tfds.verifying.checked_toys import check_agrees, other_reader, tampered, without_folder


def test_all_examples_are_asked_for_as_by_simulate(toys: Toys) -> None:
    everything = [verify(toys["plain"].dataset, take=take) for take in (-1, 10**6)]
    counts = [(found.equal, found.num_checked) for found in everything]
    assert counts == [(True, everything[0].num_examples)] * 2
    assert repr(everything[0]).startswith("<Verification ")
    assert "equal" in everything[0]._repr_html_()


def test_every_order_agrees_with_the_real_reader(toys: Toys) -> None:
    passes = itertools.cycle(range(3))

    def law(case: Case) -> int:
        found = check_agrees(toys, case, next(passes))
        if found is not None and found.num_examples:
            assert [(w.start, w.stop) for w in found.windows] == [(0, found.num_examples)]
        return found is not None

    check_cases(cases(), law, 2)


def test_of_a_longer_order_more_is_read_over_index_ranges(
    toys: Toys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(limits.BUDGETS, "files", 12)
    monkeypatch.setitem(limits.BUDGETS, "index ranges", 36)
    found = verify(toys["plain"].dataset, "train", ReadSettings(cycle=2, epochs=3))
    assert [(w.start, w.stop, w.read) for w in found.windows] == [
        (0, 36, "index ranges"),
        (0, 12, "files"),
    ]
    later = verify(toys["plain"].dataset, "train", ReadSettings(shuffle_seed=2, pass_index=1))
    assert (later.equal, later.read) == (True, "index ranges")
    everything = verify(toys["plain"].dataset, "train", take="all")
    assert [(w.start, w.stop, w.read) for w in everything.windows] == [(0, 75, "files")]


@pytest.mark.fuzz
@pytest.mark.parametrize("few", [False, True])
def test_verify_fuzzed(toys: Toys, monkeypatch: pytest.MonkeyPatch, few: bool) -> None:
    if few:
        monkeypatch.setitem(limits.BUDGETS, "files", 24)
        monkeypatch.setitem(limits.BUDGETS, "index ranges", 72)
    passes = itertools.cycle(range(3))

    def law(case: Case) -> None:
        check_agrees(toys, case, next(passes))

    check_cases(cases(), law, FUZZ // 8)


@pytest.mark.parametrize("kind", [RealFiles, IndexRanges])
def test_a_reader_with_another_block_length_is_caught_where_it_parts(
    toys: Toys, monkeypatch: pytest.MonkeyPatch, kind: Any
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


def test_shards_that_changed_places_are_found(toys: Toys, tmp_path: Path) -> None:
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


# The third shard holds ids 3 to 7. One example more is stated than comes, or one less.
@pytest.mark.parametrize(
    ("stated", "position", "found_name"),
    [
        (6, 8, "toy-train.tfrecord-00003-of-00007__0"),
        pytest.param(4, 7, "toy-train.tfrecord-00002-of-00007__4", marks=pytest.mark.slow),
    ],
)
def test_metadata_that_states_another_length_is_found(
    toys: Toys, tmp_path: Path, stated: int, position: int, found_name: str
) -> None:
    folder = tampered(toys, tmp_path)
    info = folder / "dataset_info.json"
    text = info.read_text()
    assert '"5"' in text
    info.write_text(text.replace('"5"', f'"{stated}"', 1))
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1))
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected) == (position, position)
    assert first.found_tfds_id == found_name
    assert [(f.expected, f.found) for f in found.files] == [(stated, 5)]


@pytest.mark.parametrize("name", ["plain", pytest.param("parquet", marks=pytest.mark.slow)])
def test_a_file_that_is_missing_is_found(toys: Toys, tmp_path: Path, name: str) -> None:
    folder = tampered(toys, tmp_path, name)
    file = next(folder.glob("toy-train*-00003-of-00007"))
    file.unlink()
    found = verify(read_tfds_folder(folder), "train", ReadSettings(cycle=1))
    first = found.first_difference
    assert first is not None
    assert (first.position, first.expected, first.found) == (8, 8, None)
    assert file.name in (first.reason or "")
    assert [(f.filename, f.found, f.reason) for f in found.files] == [(file.name, None, "missing")]


def test_a_host_without_examples_has_nothing_that_differs(toys: Toys) -> None:
    settings = ReadSettings(host=Host(index=8, count=9))
    found = verify(toys["plain"].dataset, "extra", settings)
    assert (found.equal, found.num_checked, found.num_files) == (True, 0, 0)
    assert found.notes == ("no file is read",)
    assert found.warnings == ("host 8/9 by even reads no examples",)


@pytest.mark.slow
def test_later_epochs_of_keras_fit_agree(toys: Toys) -> None:
    settings = ReadSettings(shuffle_seed=3, cycle=2, batch=7, loop="keras-fit", pass_index=2)
    other = changed(settings, loop="python")
    dataset = toys["plain"].dataset
    orders = []
    for each in (settings, other):
        found = verify(dataset, "train", each)
        assert (found.equal, found.num_checked) == (True, 75)
        orders.append(plan_order(dataset, "train", each).order.read(0, 75).tolist())
    assert orders[0] != orders[1]  # the two are not taken for one another


def test_an_order_that_nothing_predicts_is_refused(toys: Toys) -> None:
    with pytest.raises(UnpredictableOrderError):
        verify(toys["plain"].dataset, "train", ReadSettings(shuffle_files=True))


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_what_is_not_installed_is_named(
    toys: Toys, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    import sys

    hidden: Any = None
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.setitem(sys.modules, name, hidden)
    with pytest.raises(MissingDependencyError, match=r"; install it with: .*pip install "):
        verify(toys["plain"].dataset, "train")
    if module == "tensorflow_datasets":  # index ranges do without
        layout = Dataset(name="d", splits=(Split(name="train", shard_lengths=(3, 4)),))
        assert verify(layout, "train", ReadSettings(cycle=2, block=1)).equal
