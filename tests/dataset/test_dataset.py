"""Datasets and splits: boundaries, locations, fingerprints, refusals, sizes."""

from __future__ import annotations

import copy
import hashlib
import pickle
import random
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl.dataset.dataset as module
from shardctl.base.text import dataset_title
from shardctl.dataset.buffer_memory import ElementSize, element_size
from shardctl.dataset.dataset import Dataset, ExampleSize, Split, even_lengths
from shardctl.dataset.folders import combined, distinct_datasets, labels_of
from shardctl.dataset.shard_files import PackedInts, ShardFiles
from shardctl.errors import DatasetError, UsageError
from tests.cases import check_cases
from tests.golden import assert_answers, assert_evaluated
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import datasets, error_line, shard_lengths


def test_shards_end_where_tfds_rounds_to() -> None:
    # 2.5, 5, 7.5 are rounded to the even 2, 5, 8; fewer examples than shards leave shards empty.
    for lengths in ((3, 4, 3), (2, 3, 3, 2), (2, 1), (0, 1, 1, 0), (0, 0), ()):
        split = Split.even(name="train", num_examples=sum(lengths), num_shards=len(lengths))
        assert split.shard_lengths == lengths


def test_even_boundaries_are_those_of_tfds() -> None:
    from tensorflow_datasets.core.utils import shard_utils

    def check(case: tuple[int, int]) -> None:
        num_examples, num_shards = max(case), min(case)  # TFDS refuses more shards than examples
        split = Split.even(name="train", num_examples=num_examples, num_shards=num_shards)
        assert list(split.offsets[1:]) == shard_utils.get_shard_boundaries(num_examples, num_shards)

    numbers = st.integers(1, 3000)
    cases = st.tuples(numbers, numbers | st.integers(1, 10**15)) | st.sampled_from(
        [(1_281_167, 1024), (50_000, 64), (100_000, 128)]  # imagenet2012
    )
    check_cases(cases, check, 80)


def by_tfds(num_examples: int, num_shards: int) -> tuple[int, ...]:
    """Return the differences of TFDS's boundaries (core/utils/shard_utils.py)."""
    ends = [round(num_examples * i / num_shards) for i in range(num_shards + 1)]
    return tuple(b - a for a, b in pairwise(ends))


def test_lengths_made_together_are_those_of_tfds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 0)

    def check(rng: random.Random) -> None:
        num_shards = rng.choice([rng.randint(1, 50), rng.randint(1, 2000), 1 << rng.randint(0, 11)])
        # Whole and half quotients are where rounding is decided.
        halves = num_shards * rng.randint(0, 1 << rng.randint(1, 38)) // 2
        num_examples = rng.choice([rng.randint(0, 1 << rng.randint(1, 54)), halves])
        assert even_lengths(num_examples, num_shards) == by_tfds(num_examples, num_shards)

    check_cases(st.integers(0, 2**64).map(random.Random), check, 200)


def test_every_id_lies_in_the_shard_that_counting_finds() -> None:
    def check(lengths: tuple[int, ...]) -> None:
        split = Split(name="train", shard_lengths=lengths)
        owners = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        assert split.num_examples == len(owners)
        assert [split.shard_of(i) for i in range(len(owners))] == owners
        assert [*split.offsets[:-1]] == [sum(lengths[:shard]) for shard in range(len(lengths))]
        for outside in (-1, len(owners)):
            rule = (
                f"id {outside} is not in split 'train'; its ids are 0 to {len(owners) - 1}"
                if owners
                else f"id {outside}: split 'train' is empty"
            )
            assert error_line(lambda: split.shard_of(outside)) == rule  # noqa: B023

    check_cases(shard_lengths(), check, 200)


def test_files_of_several_folders_follow_one_another() -> None:
    split = Split(
        name="train",
        shard_lengths=(1, 2, 3, 4),
        files=(
            ShardFiles(data_dir="/a", pattern="sub/x-\0", num_shards=2),
            ShardFiles(data_dir="/none", num_shards=0),
            ShardFiles(data_dir="/b", names=("p/y", "z"), num_shards=2),
        ),
    )
    names = ["x-00000", "x-00001", "y", "z"]
    locations = [("/a", "sub/x-00000"), ("/a", "sub/x-00001"), ("/b", "p/y"), ("/b", "z")]
    assert [split.location(i) for i in range(4)] == locations
    assert list(split.filenames) == [split.filename(i) for i in range(4)] == names
    for start in range(5):
        for stop in range(start, 5):
            assert split.filenames_between(start, stop) == names[start:stop]
    for outside in (4, -1):
        rule = rf"shard_index={outside}: split 'train' has files of 4 shards, counted from 0"
        with pytest.raises(UsageError, match=rule):
            split.location(outside)


def test_files_that_nobody_named_are_refused_wherever_they_are_asked_for() -> None:
    split = Split(name="train", shard_lengths=(5, 6))
    asked: list[Callable[[], object]] = [
        lambda: split.filename(0),
        lambda: split.location(1),
        lambda: split.filenames_between(0, 2),
    ]
    for ask in asked:
        with pytest.raises(DatasetError, match=r"'train' names no files; read the dataset from"):
            ask()
    assert Split(name="train", shard_lengths=()).filenames_between(0, 0) == []


# Fingerprints.


def by_names(dataset: Dataset) -> Dataset:
    """Return the dataset with the file names written out, in another folder."""
    parts = {
        split.name: ShardFiles(data_dir="/b", names=split.filenames, num_shards=split.num_shards)
        for split in dataset.splits
    }
    splits = (replace(each, num_bytes=None, files=(parts[each.name],)) for each in dataset.splits)
    return replace(dataset, data_dir="/b", origin="another reader", splits=tuple(splits))


def test_a_fingerprint_is_the_same_however_names_and_files_are_parted() -> None:
    def check(dataset: Dataset) -> None:
        assert by_names(dataset).fingerprint == dataset.fingerprint

    check_cases(datasets(), check, 80)
    whole = toy_dataset({"train": (1, 2, 3)})
    names = whole.splits[0].filenames
    parts = tuple(ShardFiles(data_dir=f"/{n}", names=(n,), num_shards=1) for n in names)
    split = replace(whole.splits[0], files=parts)
    assert replace(whole, splits=(split,)).fingerprint == whole.fingerprint


def test_a_fingerprint_is_the_one_it_was() -> None:
    # Snapshots keep fingerprints, so this value may change only with their format version:
    # sha256 of b"shardctl layout 1\n", name \0 number of shards \0 file names \0\0, int64 lengths.
    text = b"shardctl layout 1\ntrain\x002\x00"
    text += b"toy-train.tfrecord-00000-of-00002\0toy-train.tfrecord-00001-of-00002\0\0"
    text += bytes([3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0])
    expected = f"sha256:{hashlib.sha256(text).hexdigest()}"
    assert toy_dataset({"train": (3, 256)}).fingerprint == expected


def test_fingerprints_of_different_layouts_differ() -> None:
    def renamed(file: int, name: str) -> Dataset:
        dataset = by_names(toy_dataset({"train": (1, 2), "test": (3,)}))
        names = list(dataset.splits[0].filenames)
        names[file] = name
        files = ShardFiles(names=tuple(names), num_shards=2)
        train, test = dataset.splits
        return replace(dataset, splits=(replace(train, files=(files,)), test))

    def unnamed(**splits: tuple[int, ...]) -> Dataset:
        made = (Split(name=name, shard_lengths=lengths) for name, lengths in splits.items())
        return Dataset(name="toy", splits=tuple(made))

    layouts = [
        toy_dataset({"train": (1, 2), "test": (3,)}),
        toy_dataset({"train": (2, 1), "test": (3,)}),  # the order of lengths
        toy_dataset({"train": (1, 3), "test": (3,)}),  # a length
        toy_dataset({"test": (3,), "train": (1, 2)}),  # the order of splits
        toy_dataset({"train": (1, 2)}),  # a split less
        toy_dataset({"train": (1, 2, 0), "test": (3,)}),  # an empty shard more
        toy_dataset({"train": (1, 2), "test": ()}),
        toy_dataset({"train": (1, 2), "test": (0,)}),
        toy_dataset({"train": (1, 2), "validation": (3,)}),  # the name of a split
        toy_dataset({"train": (1, 2), "test": (3,)}, name="other"),  # the names of the files
        renamed(0, "x"),
        renamed(1, "x"),
        unnamed(train=(1, 2)),
        # The bytes of these lengths and of the next split's name must not run into each other.
        unnamed(a=(int.from_bytes(b"abcde\0\0\0", "little"),)),
        unnamed(a=(), abcde=()),
    ]
    assert len({layout.fingerprint for layout in layouts}) == len(layouts)


def test_a_dataset_that_contradicts_itself_is_refused() -> None:
    names = {**vars(module), "ShardFiles": ShardFiles, "toy_dataset": toy_dataset}
    path = Path(__file__).parent / "golden" / "refused.txt"
    assert_answers(path, lambda question: eval(question, names))
    assert DatasetError.exit_code == 2


def test_a_title_is_what_tfds_load_takes() -> None:
    split = Split(name="train", shard_lengths=())
    for config, version, title in (
        (None, None, "coco"),
        (None, "1.1.0", "coco:1.1.0"),
        ("2017", "1.1.0", "coco/2017:1.1.0"),
        ("2017", None, "coco/2017"),
    ):
        dataset = Dataset(name="coco", config=config, version=version, splits=(split,))
        assert dataset.title == dataset.identity.title == title
        assert dataset_title("coco", config, version) == title


# Several datasets as one.


def _dataset(name: str, *lengths: int, **more: Any) -> Dataset:
    return Dataset(name=name, splits=(Split(name="train", shard_lengths=lengths),), **more)


def test_splits_of_a_mixture_are_called_by_their_dataset() -> None:
    one, two = _dataset("a", 3, 4), _dataset("b", 5)
    sizes = [(split.name, split.num_examples) for split in combined([one, two]).splits]
    assert sizes == [("a/train", 7), ("b/train", 5)]
    assert combined([one, two]).fingerprint != combined([two, one]).fingerprint
    assert combined([one]) is one
    old, new = _dataset("a", 3, version="1.0.0"), _dataset("a", 4, version="2.0.0")
    assert labels_of([old, new]) == ["a-1.0.0", "a-2.0.0"]
    assert labels_of([replace(old, config="x"), replace(old, config="y")]) == ["a-x", "a-y"]
    assert labels_of([old, replace(old)]) == ["a-1", "a-2"]
    assert distinct_datasets([one, two, replace(one)]) == [one, two]


# What an example takes, decoded and in a shuffle buffer.

_KNOWN = ExampleSize(num_bytes=792, num_tensors=2)
_PARTLY = ExampleSize(num_bytes=8, num_tensors=3, unknown=("image", "name"))


def test_a_size_is_asked_for_once_and_tells_no_datasets_apart() -> None:
    asked = iter([_KNOWN])  # once
    plain = _dataset("d", 3)
    known = replace(plain, features=lambda: next(asked))
    assert (known.example_size, known.example_size) == (_KNOWN, _KNOWN)
    assert plain.example_size is None
    assert (plain == known, hash(plain) == hash(known)) == (True, True)
    assert (plain.identity, repr(plain)) == (known.identity, repr(known))


def _size(
    known: ExampleSize | None, num_bytes: int | None, given: int | None = None
) -> ElementSize | None:
    split = Split(name="train", shard_lengths=(6, 4), num_bytes=num_bytes)
    dataset = Dataset(name="d", splits=(split,), features=None if known is None else lambda: known)
    return element_size(dataset, [split], given)


def test_the_best_that_is_known_of_an_element_counts() -> None:
    def best(known: ExampleSize | None, num_bytes: int, given: int) -> object:
        size = _size(known, num_bytes, given)
        assert size is not None
        assert size.unknown == (() if known is None or given is not None else known.unknown)
        return float(size.num_bytes), size.basis, size.certain

    assert_evaluated(globals(), "elements", best)
    assert _size(None, None) is _size(None, 0) is None


def test_bytes_and_examples_are_each_others_inverse() -> None:
    size = ElementSize(num_bytes=Fraction(10, 3), basis="stored")
    for number in range(1, 200):
        assert size.of(number) == -(-10 * number // 3)
        assert size.fits(size.of(number)) == number
        assert size.fits(number) == 3 * number // 10


# Packed ints are a tuple in all but memory.


def test_packed_ints_are_a_tuple() -> None:
    packed = PackedInts([3, 4, -5])
    assert packed == (3, 4, -5) == packed == PackedInts((3, 4, -5))
    assert packed not in ((3, 4), (3, 4, 5), [3, 4, -5])
    assert (hash(packed), repr(packed)) == (hash((3, 4, -5)), "(3, 4, -5)")
    assert pickle.loads(pickle.dumps(packed)) == copy.deepcopy(packed) == packed
    packed = PackedInts(range(10))
    assert (packed[3], packed[-1]) == (3, 9)
    assert (packed[2:4] == (2, 3), packed[::-5] == (9, 4)) == (True, True)
    assert packed[:2] + (7,) == (0, 1, 7) == (0,) + packed[1:2] + (7,)  # noqa: RUF005
    assert (packed.count(3), packed.count(11), 9 in packed, len(packed)) == (1, 0, True, 10)
    with pytest.raises(OverflowError):
        PackedInts([2**63])


def test_numpy_sees_packed_ints_without_a_copy_and_cannot_write() -> None:
    packed = PackedInts([1, -1])
    values = packed.int64s()
    assert np.shares_memory(values, packed.int64s())
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 5
    assert PackedInts([]).int64s().tolist() == []
    assert PackedInts.of_int64s(np.arange(6)[::-2]) == (5, 3, 1)
    assert packed.little_endian().tobytes() == b"\1" + b"\0" * 7 + b"\xff" * 8


@pytest.mark.parametrize("count", [1, 3, 20_000])
def test_sums_of_packed_ints(count: int) -> None:
    packed = PackedInts(range(count))
    assert packed.sums() == tuple(n * (n - 1) // 2 for n in range(count + 1))
    assert (packed.total(), packed.least()) == (sum(range(count)), 0)
    assert PackedInts([2**62] * count).total() == 2**62 * count
    assert PackedInts([*range(count), -7]).least() == -7
