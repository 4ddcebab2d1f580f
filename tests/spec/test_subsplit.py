"""Subsplits and file instructions against TFDS: the same files, skips and takes, or both refuse."""

from __future__ import annotations

import ast
import functools
import random
import re
from pathlib import Path

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.reference import merge_datasets
from shardctl.spec.subsplit import (
    FileInstruction,
    Slice,
    SplitRange,
    default_spec,
    file_instructions,
    parse_subsplit,
    resolve_subsplit,
)
from tests.cases import FUZZ, add_cases, check_cases, counted, random_of_a_fuzz_run
from tests.golden import assert_answers, listed
from tests.spec.tfds_splits import (
    Layout,
    Read,
    ids_read,
    random_layout,
    random_spec,
    reads,
    tfds_reads,
    tfds_runs_backwards,
    tfds_splits,
    toy_dataset,
)
from tests.strategies import error_line, shard_lengths

NUM_CASES = 10_000

# Seven shards of 10 examples, two without any, and a short one: 63 in all.
TOY: Layout = {"train": (10, 10, 0, 10, 10, 0, 10, 10, 3), "test": (5,)}
SEVEN: Layout = {"train": (2,) * 7}


def our_reads(dataset: Dataset, spec: str) -> list[Read] | None:
    """Return what we read for a spec, None where we refuse it with one printable line."""
    if error_line(lambda: resolve_subsplit(spec, dataset)) is not None:
        return None
    return reads(file_instructions(resolve_subsplit(spec, dataset).ranges))


# Named cases.


GOLDEN = Path(__file__).parent / "golden"


def said(layout: Layout, question: str) -> str:
    """Return the ranges of a spec, and what surprises about them."""
    resolved = resolve_subsplit(ast.literal_eval(question), toy_dataset(layout))
    ranges = [(piece.split.name, piece.start, piece.stop) for piece in resolved.ranges]
    return "\n".join(map(str, (*ranges, *resolved.warnings)))


def test_what_a_spec_selects_and_what_is_said_of_it() -> None:
    assert_answers(GOLDEN / "subsplits.txt", functools.partial(said, TOY))
    assert_answers(GOLDEN / "surprises.txt", functools.partial(said, SEVEN))


def test_what_surprises_is_what_tfds_reads() -> None:
    questions = re.findall(r"(?m)^> '(.*)'$", (GOLDEN / "surprises.txt").read_text("utf-8"))
    for spec in counted(questions):
        ours = our_reads(toy_dataset(SEVEN), spec)
        assert ours is None or tfds_reads(tfds_splits(SEVEN), spec) == ours
    assert len(questions) > 10


def test_blanks_round_a_plus_cost_linear_time() -> None:
    spec = f"train{' ' * 200_000}x"  # \s*\+ tries each blank, and from each runs on to the x
    assert error_line(lambda: resolve_subsplit(spec, toy_dataset(TOY))) is not None


@pytest.mark.parametrize(
    ("names", "spec"),
    [(["test", "train"], "train"), (["test"], "test"), (["test", "validation"], None)],
)
def test_without_a_spec_train_is_read_or_the_only_split(names: list[str], spec: str | None) -> None:
    dataset = toy_dataset(dict.fromkeys(names, (1,)))
    if spec is None:
        assert "it has: test, validation" in str(error_line(lambda: default_spec(dataset)))
    else:
        assert default_spec(dataset) == spec


# Real TFDS.


def file(split: str, skip: int, take: int, of: int = 10) -> Read:
    return (f"toy-{split}.tfrecord-00000-of-00001", skip, take, of)


TEN: Layout = {"train": (10,)}


@pytest.mark.parametrize(
    ("spec", "layout", "tfds", "ours"),
    listed(Path(__file__).with_name("not_as_tfds.txt"), globals()),
)
def test_where_we_differ_from_tfds_on_purpose(
    spec: str, layout: Layout, tfds: list[Read] | None, ours: list[Read] | None
) -> None:
    assert tfds_reads(tfds_splits(layout), spec) == tfds
    assert our_reads(toy_dataset(layout), spec) == ours


def test_an_empty_result_is_a_warning_here_and_an_error_when_tfds_reads_it() -> None:
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import reader

    assert tfds_reads(tfds_splits(TEN), "train[5:5]") == []
    resolved = resolve_subsplit("train[5:5]", toy_dataset(TEN))
    assert file_instructions(resolved.ranges) == ()
    assert len(resolved.warnings) == 1
    with pytest.raises(ValueError, match="corresponds to no data"):
        reader.Reader({}).read_files(
            [], read_config=tfds.ReadConfig(), shuffle_files=False, disable_shuffling=False
        )


def compare_with_tfds(rng: random.Random, num_cases: int) -> dict[str, int]:
    """Compare random pairs of layout and spec; return how many pairs of each kind there were."""
    kinds = {"read": 0, "empty": 0, "refused": 0, "backwards": 0}
    for number in counted(range(num_cases)):
        if number % 5 == 0:
            layout = random_layout(rng)
            splits, dataset = tfds_splits(layout), toy_dataset(layout)
        spec = random_spec(rng, layout)
        expected, actual = tfds_reads(splits, spec), our_reads(dataset, spec)
        if tfds_runs_backwards(splits, spec):
            kinds["backwards"] += 1
            assert actual is None, (layout, spec)
            continue
        kinds["refused" if expected is None else "read" if expected else "empty"] += 1
        assert actual == expected, (layout, spec)
    return kinds


def test_random_specs_over_random_layouts_read_what_tfds_reads() -> None:
    kinds = compare_with_tfds(random.Random(0), NUM_CASES)
    # Of each kind enough to mean something.
    assert kinds["read"] > NUM_CASES / 4
    assert min(kinds.values()) > NUM_CASES / 50


@pytest.mark.fuzz
def test_many_random_specs_read_what_tfds_reads() -> None:
    compare_with_tfds(random_of_a_fuzz_run(), 10 * FUZZ)


def test_splits_in_several_folders_read_what_tfds_reads() -> None:
    from tensorflow_datasets.core import splits as splits_lib

    rng = random.Random(1)
    num_cases = num_read = 0
    for _ in range(150):
        layouts = [
            {"train": random_layout(rng).popitem()[1], "test": (3,) * rng.randrange(3)}
            for _ in range(rng.randint(1, 3))
        ]
        splits = splits_lib.SplitDict.merge_multiple(
            [tfds_splits(layout, f"/{i}", f"d{i}") for i, layout in enumerate(layouts)]
        )
        parts = [toy_dataset(layout, f"/{i}", f"d{i}") for i, layout in enumerate(layouts)]
        merged = merge_datasets(parts)
        for name in ("train", "test"):
            split = merged.split(name)
            located = [split.location(index) for index in range(split.num_shards)]
            paths = [f"{data_dir}/{relative}" for data_dir, relative in located]
            assert paths == [str(path) for path in splits[name].filepaths]
            assert list(split.filenames) == splits[name].filenames
        layout = {split.name: tuple(split.shard_lengths) for split in merged.splits}
        for _ in range(4):
            spec = random_spec(rng, layout)
            if spec.startswith("all") or "+all" in spec or tfds_runs_backwards(splits, spec):
                continue  # merge_multiple keeps the splits in a set, so `all` has no order
            expected = tfds_reads(splits, spec)
            assert our_reads(merged, spec) == expected, (layouts, spec)
            num_cases += 1
            num_read += bool(expected)
    add_cases(num_cases)
    assert num_read > num_cases / 4 or FUZZ < 100  # of a few random ones nobody knows


# Laws.


slices = st.one_of(
    st.builds(Slice, split=st.sampled_from(["train", "a-b", "é"])),
    *(
        st.builds(
            Slice, split=st.just("train"), start=bound, stop=bound, unit=st.just(unit)
        ).filter(lambda part: part.start is not None or part.stop is not None)
        for unit, bound in {
            "abs": st.none() | st.integers(),
            "shard": st.none() | st.integers(),
            "%": st.none() | st.floats(-100, 100) | st.sampled_from([1e-9, -0.0, 1 / 3, 100.0]),
        }.items()
    ),
)


def test_a_slice_and_a_sum_read_back_from_their_text() -> None:
    def check(parts: list[Slice]) -> None:
        assert parse_subsplit("+".join(map(str, parts))) == tuple(parts)

    check_cases(st.lists(slices, min_size=1, max_size=3), check, 150)


def test_the_reads_of_a_slice_are_that_slice_of_the_ids() -> None:
    def check(case: tuple[tuple[int, ...], int | None, int | None]) -> None:
        lengths, start, stop = case
        ids = [("train", i) for i in range(sum(lengths))]
        first, last, _ = slice(start, stop).indices(len(ids))
        spec = f"train[{'' if start is None else start}:{'' if stop is None else stop}]"
        resolve = functools.partial(resolve_subsplit, spec, toy_dataset({"train": lengths}))
        outside = any(abs(bound or 0) > len(ids) for bound in (start, stop))
        if outside or first > last or spec == "train[:]":
            assert error_line(resolve) is not None
            return
        instructions = file_instructions(resolve().ranges)
        assert ids_read(instructions, {"train": lengths}) == ids[start:stop]
        firsts = [ids_read([i], {"train": lengths})[0][1] for i in instructions]
        assert [i.first_id for i in instructions] == firsts

    bound = st.none() | st.integers(-12, 12)
    check_cases(st.tuples(shard_lengths(), bound, bound), check, 100)


# Ranges and file instructions.


def instructions(lengths: tuple[int, ...], start: int, stop: int) -> list[tuple[int, ...]]:
    """Return (shard, skip, take, of, first id) of each instruction."""
    files = ShardFiles(pattern="\0", num_shards=len(lengths))
    split = Split(name="train", shard_lengths=lengths, files=(files,))
    return [
        (int(i.filename), i.skip, i.take, i.examples_in_shard, i.first_id)
        for i in file_instructions([SplitRange(split=split, start=start, stop=stop)])
    ]


def test_a_range_becomes_a_skip_and_a_take_in_each_file() -> None:
    path = GOLDEN / "instructions.txt"
    assert_answers(path, lambda question: repr(eval(question, globals())))


def test_instructions_are_those_of_tfds() -> None:
    from tensorflow_datasets.core.utils import shard_utils

    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, first, second = case
        start, stop = sorted(min(bound, sum(lengths)) for bound in (first, second))
        theirs = shard_utils.get_file_instructions(
            start, stop, [str(shard) for shard in range(len(lengths))], lengths
        )
        ours = instructions(lengths, start, stop)
        assert [row[:4] for row in ours] == [
            (int(i.filename), i.skip, i.take, i.examples_in_shard) for i in theirs
        ]
        assert [skip + take == of for _, skip, take, of, _ in ours] == [i.takes_all for i in theirs]

    cases = st.tuples(shard_lengths(12), st.integers(0, 60), st.integers(0, 60))
    check_cases(cases, check, 250)


NAMED = {"filename": "f", "split": "a"}


def test_a_split_without_files_cannot_be_read() -> None:
    split = Split(name="train", shard_lengths=(3,))
    with pytest.raises(DatasetError, match="'train' names no files"):
        file_instructions([SplitRange(split=split, start=0, stop=3)])
    assert file_instructions([SplitRange(split=split, start=3, stop=3)]) == ()
    assert FileInstruction(**NAMED, skip=1, take=2, examples_in_shard=3, first_id=7).last_id == 8
    for start, stop in ((-1, 2), (2, 1), (0, 4)):
        with pytest.raises(ValueError, match="is not a range of train"):
            SplitRange(split=split, start=start, stop=stop)
