"""File names of shards, against TFDS's ShardedFileTemplate."""

from __future__ import annotations

import functools
import os
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.reads import shard_names
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.strategies import error_line

NAMES = {"dataset": "toy", "split": "train", "file_format": "tfrecord"}


def resolved(template: str, num_shards: int = 2, **names: str) -> ShardFiles:
    return ShardFiles.from_template(template, num_shards=num_shards, **{**NAMES, **names})


def tfds_template(template: str, *, dataset: str, split: str, file_format: str) -> Any:
    from tensorflow_datasets.core import naming

    return naming.ShardedFileTemplate(
        data_dir="/data",
        template=template,
        dataset_name=dataset,
        split=split,
        filetype_suffix=file_format,
    )


def tfds_paths(template: str, num_shards: int = 2, **names: str) -> list[str] | None:
    """Return the paths TFDS makes of a template, relative to its folder; None if it refuses."""
    sharded = tfds_template(template, **{**NAMES, **names})
    try:
        return [
            sharded.relative_filepath(shard_index=index, num_shards=num_shards)
            for index in range(num_shards)
        ]
    except (ValueError, IndexError, KeyError, AttributeError):
        return None


def last_of(template: str) -> str:
    files = resolved(template)
    assert list(files) == tfds_paths(template)
    return files[1]


@pytest.mark.parametrize(
    ("num_shards", "index", "name"),
    [
        (1, 0, "toy-train.tfrecord-00000-of-00001"),
        (99_999, 7, "toy-train.tfrecord-00007-of-99999"),
        (100_000, 7, "toy-train.tfrecord-000007-of-100000"),
        (1_000_000, 999_999, "toy-train.tfrecord-0999999-of-1000000"),
    ],
)
def test_an_index_has_at_least_five_digits(num_shards: int, index: int, name: str) -> None:
    files = resolved(DEFAULT_TEMPLATE, num_shards)
    assert len(files) == num_shards
    assert files[index] == files.between(index, index + 1)[0] == name
    sharded = tfds_template(DEFAULT_TEMPLATE, **NAMES)
    assert sharded.relative_filepath(shard_index=index, num_shards=num_shards) == name


def refused(template: str, tfds: str) -> object:
    assert tfds_paths(template, 1) == [tfds]
    return resolved(template)


def test_a_template_names_the_files_or_is_refused() -> None:
    assert_evaluated(globals(), "templates")


def test_what_no_file_system_takes_and_what_leads_out_is_refused() -> None:
    assert_evaluated(globals(), "names")


BROKEN = ["{SPLIT", "SPLIT}", "{}", "{0}", "{NAME}", "{split}", "{SPLIT:{}}", "{{SPLIT}", "{"]


@pytest.mark.parametrize("template", [*BROKEN, "{ SPLIT}"])
def test_a_template_tfds_cannot_fill_is_refused(template: str) -> None:
    assert tfds_paths(template) is None
    assert error_line(lambda: resolved(template)) is not None


def is_outside_or_no_file(path: str) -> bool:
    parts = path.split("/")
    return path.startswith("/") or ".." in parts or parts[-1] in ("", ".")


def test_random_templates_name_what_tfds_names() -> None:
    num_named = 0

    def check(case: tuple[list[str], int, str, str]) -> None:
        nonlocal num_named
        pieces, num_shards, dataset, split = case
        template = "".join(pieces)
        expected = tfds_paths(template, num_shards, dataset=dataset, split=split)
        build = functools.partial(resolved, template, num_shards, dataset=dataset, split=split)
        if error_line(build) is not None:
            assert expected is None or all(map(is_outside_or_no_file, expected)), template
            return
        files = build()
        num_named += 1
        assert list(files) == expected
        assert [files[index] for index in range(num_shards)] == expected
        assert files[:] == tuple(expected)

    variables = ["DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"]
    text = ["{{", "}}", "-", ".", "/", "%", "%d", "x", "é", "{{x}}", "{", "}", "..", "{X}", " "]
    piece = st.sampled_from([f"{{{name}}}" for name in variables]) | st.sampled_from(text)
    cases = st.tuples(
        st.lists(piece, min_size=1, max_size=6),
        st.integers(1, 4),
        st.sampled_from(["toy", "x%dy", "a{b}"]),
        st.sampled_from(["train", "a-b", "{SPLIT}"]),
    )
    num_cases = check_cases(cases, check, 300)
    assert num_named > 0.6 * num_cases


def test_a_part_of_the_names_is_that_slice_of_them() -> None:
    def check(case: tuple[str, int, int, int]) -> None:
        template, num_shards, start, stop = case
        by_pattern = resolved(template, num_shards)
        names = tuple(by_pattern)
        listed = ShardFiles(names=names, num_shards=num_shards)
        stop = min(stop, num_shards)
        for files in (by_pattern, listed):
            assert list(files) == list(names)
            assert list(files.between(start, stop)) == list(names[start:stop])
            assert files[start:stop] == names[start:stop]
            assert files[::-2] == names[::-2]
            assert [files[i] for i in range(-num_shards, 0)] == list(names)

    templates = st.sampled_from(
        [DEFAULT_TEMPLATE, "%s{SHARD_INDEX}%", "{SHARD_INDEX}/{SHARD_INDEX}"]
    )
    numbers = st.integers(0, 12)
    cases = st.tuples(templates, numbers, numbers, numbers)
    check_cases(cases, check, 200)


@pytest.mark.parametrize("pattern", ["d-\0-of-3", "\0/d-\0", "a%d\0"])
def test_a_path_has_the_index_that_it_was_made_of(pattern: str) -> None:
    files = ShardFiles(pattern=pattern, num_shards=3)
    assert [files.index_of(path) for path in files] == [0, 1, 2]
    assert files.at([2, 0, 2]) == [files[2], files[0], files[2]]
    for path in ("", "d-2", "d-00003-of-3", f"{files[1]}x", files[1][:-1], files[1].upper() + "-"):
        assert files.index_of(path) is None


def test_named_files_have_the_index_of_their_name() -> None:
    for index in (2, -3):
        with pytest.raises(IndexError):
            resolved(DEFAULT_TEMPLATE, 2)[index]
    assert list(resolved(DEFAULT_TEMPLATE, 0)) == []
    bytes_ = os.fsdecode(b"a\xff")  # that are no text
    assert list(ShardFiles(names=(bytes_,), num_shards=1)) == [bytes_]
    files = ShardFiles(names=("a", "b"), num_shards=2)
    assert (files.index_of("b"), files.index_of("c"), files.at([1])) == (1, None, ["b"])


@pytest.mark.parametrize("pattern", ["a-\0-of-x", "\0", "a%s/é\0.rec", "\0-\0", "one"])
@pytest.mark.parametrize("num_shards", [999, 1000, 5432, 123_456])
def test_names_side_by_side_are_those_one_by_one(pattern: str, num_shards: int) -> None:
    files = ShardFiles(pattern=pattern, num_shards=num_shards)
    bounds = ((0, 999), (0, 1000), (1, 1001), (998, 2500), (4321, 5432), (0, 0))
    for start, stop in (bound for bound in bounds if bound[1] <= num_shards):
        assert list(files.between(start, stop)) == [files[i] for i in range(start, stop)]


# With the index in the name, twice in it, in the folder, in both, nowhere; and what `%` would read.
_PATTERNS = ["d-\0", "a/d-\0", "\0-%d-\0", "\0/d", "\0/d-\0", "one", "ä\n-\0", "d-%s-\0-of-9"]


@st.composite
def _splits(draw: st.DrawFn) -> tuple[Split, ...]:
    splits = []
    for index in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
        # Names of a split with so many shards have an index with a digit more.
        if draw(st.integers(0, 9)) == 0:
            sizes = [100_001]
        files = []
        for size in sizes:
            listed = draw(st.booleans()) and size < 9
            names = tuple(f"x/n{index}-{i}" for i in range(size)) if listed else None
            pattern = "" if listed else draw(st.sampled_from(_PATTERNS))
            files.append(ShardFiles(pattern=pattern, num_shards=size, names=names))
        splits.append(Split(name=f"s{index}", shard_lengths=(1,) * sum(sizes), files=tuple(files)))
    return tuple(splits)


def test_names_of_shards_are_those_of_each() -> None:
    def check(case: tuple[tuple[Split, ...], int]) -> None:
        splits, seed = case
        rng = np.random.default_rng(seed)
        split = rng.integers(0, len(splits), seed % 20)
        shard = rng.integers(0, [splits[index].num_shards for index in split])
        if seed % 3 == 0:  # in the order of storage
            shard = np.arange(min(splits[0].num_shards, 50))
            split = np.zeros_like(shard)
        expected = [
            splits[s].filename(i) for s, i in zip(split.tolist(), shard.tolist(), strict=True)
        ]
        assert shard_names(splits, split, shard) == expected

    check_cases(st.tuples(_splits(), st.integers(0, 200)), check, 40)
