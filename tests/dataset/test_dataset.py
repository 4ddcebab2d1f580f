"""Datasets and splits: boundaries, places, fingerprints, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, ShardctlError, UsageError
from tests.cases import check_cases
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import datasets, error_line, shard_lengths

# --------------------------------------------------------------------------- boundaries


@pytest.mark.parametrize(
    ("num_examples", "num_shards", "lengths"),
    [
        (10, 3, (3, 4, 3)),  # 3.33 and 6.67
        (10, 4, (2, 3, 3, 2)),  # 2.5, 5, 7.5 are rounded to the even 2, 5, 8
        (3, 2, (2, 1)),
        (5, 1, (5,)),
        (2, 4, (0, 1, 1, 0)),  # fewer examples than shards
        (0, 2, (0, 0)),
        (0, 0, ()),
    ],
)
def test_shards_end_where_tfds_rounds_to(
    num_examples: int, num_shards: int, lengths: tuple[int, ...]
) -> None:
    split = Split.even(name="train", num_examples=num_examples, num_shards=num_shards)
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


@pytest.mark.parametrize(("num_examples", "num_shards"), [(1, 0), (-1, 1), (1, -1)])
def test_examples_need_a_shard(num_examples: int, num_shards: int) -> None:
    def build() -> Split:
        return Split.even(name="train", num_examples=num_examples, num_shards=num_shards)

    assert error_line(build) == f"split 'train': {num_examples} examples in {num_shards} shards"


# --------------------------------------------------------------------------- places


def test_every_id_lies_in_the_shard_that_counting_finds() -> None:
    def check(lengths: tuple[int, ...]) -> None:
        split = Split(name="train", shard_lengths=lengths)
        owners = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        assert split.num_examples == len(owners)
        assert [split.shard_of(i) for i in range(len(owners))] == owners
        for shard, first in enumerate(split.offsets[:-1]):
            assert first == sum(lengths[:shard])
        for outside in (-1, len(owners)):
            assert f"id {outside}" in str(error_line(lambda: split.shard_of(outside)))  # noqa: B023

    check_cases(shard_lengths(), check, 200)


def test_an_id_outside_its_split_is_refused_with_the_ids_there_are() -> None:
    split = Split(name="train", shard_lengths=(3, 2))
    line = error_line(lambda: split.shard_of(5))
    assert line == "id 5 is not in split 'train'; its ids are 0 to 4"
    empty = Split(name="train", shard_lengths=(0,))
    assert error_line(lambda: empty.shard_of(0)) == "id 0: split 'train' is empty"


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
    assert [split.location(i) for i in range(4)] == [
        ("/a", "sub/x-00000"),
        ("/a", "sub/x-00001"),
        ("/b", "p/y"),
        ("/b", "z"),
    ]
    assert list(split.filenames) == [split.filename(i) for i in range(4)] == names
    for start in range(5):
        for stop in range(start, 5):
            assert split.filenames_between(start, stop) == names[start:stop]
    for outside in (4, -1):
        with pytest.raises(
            UsageError, match=rf"shard_index={outside}: split 'train' has files of 4"
        ):
            split.location(outside)


# --------------------------------------------------------------------------- fingerprint


def by_names(dataset: Dataset) -> Dataset:
    """Return the dataset with the file names written out, in another folder."""
    return replace(
        dataset,
        data_dir="/elsewhere",
        origin="another reader",
        splits=tuple(
            replace(
                split,
                num_bytes=None,
                files=(
                    ShardFiles(
                        data_dir="/elsewhere", names=split.filenames, num_shards=split.num_shards
                    ),
                ),
            )
            for split in dataset.splits
        ),
    )


def test_files_that_nobody_named_are_refused_wherever_they_are_asked_for() -> None:
    split = Split(name="train", shard_lengths=(5, 6))
    asked: list[Callable[[], object]] = [
        lambda: split.filename(0),
        lambda: split.location(1),
        lambda: split.filenames_between(0, 2),
    ]
    for ask in asked:
        with pytest.raises(
            DatasetError, match=r"'train' names no files; read the dataset from a l"
        ):
            ask()
    assert Split(name="train", shard_lengths=()).filenames_between(0, 0) == []


def test_a_fingerprint_is_the_same_for_names_by_pattern_or_one_by_one() -> None:
    def check(dataset: Dataset) -> None:
        assert by_names(dataset).fingerprint == dataset.fingerprint

    check_cases(datasets(), check, 80)


def test_a_fingerprint_is_the_same_however_the_files_are_parted() -> None:
    whole = toy_dataset({"train": (1, 2, 3)})
    names = whole.splits[0].filenames
    parts = tuple(ShardFiles(data_dir=f"/{n}", names=(n,), num_shards=1) for n in names)
    split = replace(whole.splits[0], files=parts)
    assert replace(whole, splits=(split,)).fingerprint == whole.fingerprint


def test_a_fingerprint_is_the_one_it_was() -> None:
    # Snapshots keep fingerprints, so this value may change only with their format version:
    # sha256 of b"shardctl layout 1\n", name \0 number of shards \0 file names \0\0, int64 lengths.
    import hashlib

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
        return replace(
            dataset, splits=(replace(dataset.splits[0], files=(files,)), dataset.splits[1])
        )

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
        Dataset(name="toy", splits=(Split(name="train", shard_lengths=(1, 2)),)),  # no files
        # The bytes of these lengths and of the next split's name must not run into each other.
        Dataset(
            name="toy",
            splits=(Split(name="a", shard_lengths=(int.from_bytes(b"abcde\0\0\0", "little"),)),),
        ),
        Dataset(
            name="toy",
            splits=(Split(name="a", shard_lengths=()), Split(name="abcde", shard_lengths=())),
        ),
    ]
    assert len({layout.fingerprint for layout in layouts}) == len(layouts)


def test_a_change_of_any_length_changes_the_fingerprint() -> None:
    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, shard, more = case
        if lengths:
            changed = list(lengths)
            changed[shard % len(lengths)] += more
            before, after = toy_dataset({"train": lengths}), toy_dataset({"train": tuple(changed)})
            assert before.fingerprint != after.fingerprint

    cases = st.tuples(shard_lengths(), st.integers(0, 8), st.integers(1, 2**40))
    check_cases(cases, check, 80)


# --------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (
            lambda: Split(name="train", shard_lengths=(3, -1)),
            "split 'train': shard length -1 is negative",
        ),
        (
            lambda: Split(name="train", shard_lengths=(INT64_MAX, 1)),
            f"split 'train' has {INT64_MAX + 1} examples; an int64 holds at most {INT64_MAX}",
        ),
        (
            lambda: Split(
                name="train", shard_lengths=(3,), files=(ShardFiles(pattern="x", num_shards=2),)
            ),
            "split 'train': not one file name a shard",
        ),
        (
            lambda: Split(name="train", shard_lengths=(3,), shard_bytes=(1, 2)),
            "split 'train': not one size in bytes a shard",
        ),
        (lambda: Dataset(name="toy", splits=()), "dataset 'toy' has no splits"),
        (
            lambda: Dataset(name="toy", splits=(Split(name="a", shard_lengths=()),) * 2),
            "dataset 'toy' has split 'a' twice",
        ),
        (
            lambda: Dataset(name="t\x1b[31m", splits=()),
            r"dataset 't\x1b[31m' has no splits",
        ),
        (
            lambda: toy_dataset({"train": (1,), "test": (1,)}).split("trian"),
            "no split 'trian' in toy; it has: train, test",
        ),
    ],
)
def test_a_dataset_that_contradicts_itself_is_refused(
    build: Callable[[], object], says: str
) -> None:
    assert error_line(build) == says


def test_a_split_may_hold_as_many_examples_as_an_int64() -> None:
    assert Split(name="train", shard_lengths=(INT64_MAX, 0)).num_examples == INT64_MAX


@pytest.mark.parametrize(
    ("config", "version", "title"),
    [
        (None, None, "coco"),
        (None, "1.1.0", "coco:1.1.0"),
        ("2017", "1.1.0", "coco/2017:1.1.0"),
        ("2017", None, "coco/2017"),
    ],
)
def test_a_title_is_what_tfds_load_takes(
    config: str | None, version: str | None, title: str
) -> None:
    split = Split(name="train", shard_lengths=())
    assert Dataset(name="coco", config=config, version=version, splits=(split,)).title == title


def test_refusals_exit_with_2() -> None:
    with pytest.raises(ShardctlError) as caught:
        Dataset(name="toy", splits=())
    assert caught.value.exit_code == 2
