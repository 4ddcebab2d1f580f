"""SC026 to SC029 and SC061: what each rule finds something in, and the nearest it does not."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Split
from shardctl.order.file_formats import num_rows_written
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.lint.rules import reader
from shardctl.verbs.lint.rules.reader import num_in_whole_shards
from tests.verbs.lint.rules.rule_cases import PARQUET, SOURCE, Case, Row, case, codes_of

CASES: tuple[Row, ...] = (
    ("SC026", case(shuffle_seed=1, layout={"ordered": True}), case(layout={"ordered": True})),
    ("SC026", case(cycle=2, layout={"ordered": True}), case(cycle=1, layout={"ordered": True})),
    ("SC026", case(cycle="auto", cpus=1, layout={"ordered": True}), case(shuffle_seed=1)),
    ("SC027", case(**SOURCE), case(**PARQUET)),
    (
        "SC027",
        case(usage={"as_data_source": False}, layout={"file_format": "array_record"}),
        case(layout={"file_format": "array_record"}),
    ),
    (
        "SC027",
        case(usage={"as_data_source": True}, layout={"file_format": "mds"}),
        case(layout={"file_format": "mds"}),
    ),
    ("SC028", case("train[:150]", **PARQUET), case("train[:200]", **PARQUET)),
    ("SC028", case("train[1:]", **PARQUET), case("train[1:]", layout={"file_format": "parquet"})),
    ("SC028", case("train[:50]+test", **PARQUET), case("train[3shard]+test", **PARQUET)),
    (
        "SC028",
        case(usage={"as_data_source": True, "hosts": 3}, layout={"file_format": "parquet"}),
        case(usage={"as_data_source": True, "hosts": 4}, layout={"file_format": "parquet"}),
    ),
    ("SC029", case(**PARQUET, shuffle_seed=1), case(shuffle_seed=1)),
    ("SC029", case(**PARQUET, cycle=4), case(**PARQUET, epochs=3)),
    (
        "SC061",
        case(layout={"file_format": "parquet", "train": (9, 101)}),
        case(layout={"file_format": "parquet", "train": (9, 100)}),
    ),
    ("SC061", case(**PARQUET | {"layout": {"file_format": "parquet", "train": (214,)}}), case()),
)


@pytest.mark.parametrize(("code", "fires", "quiet"), CASES)
def test_a_rule_finds_what_it_is_about_and_not_what_is_next_to_it(
    code: str, fires: Case, quiet: Case
) -> None:
    assert code in fires.codes()
    assert code not in quiet.codes()
    fires.check_fits_screens()


def test_every_rule_has_a_case() -> None:
    of_formats = {"SC026", "SC027", "SC028", "SC029", "SC061"}
    assert {code for code, _, _ in CASES} == codes_of(reader) & of_formats


def test_rows_are_counted_as_the_writer_of_tfds_batches_them() -> None:
    from tensorflow_datasets.core import file_adapters

    for length in (*range(1203), 5_000, 123_456):
        written = sum(map(len, file_adapters._batched(iter(range(length)), 100)))
        assert num_rows_written(length) == written, length


def test_whole_shards_are_those_that_hold_an_example_of_the_range() -> None:
    lengths = (3, 0, 4, 5)
    split = Split(name="train", shard_lengths=lengths)
    shard_of = [shard for shard, length in enumerate(lengths) for _ in range(length)]
    for start in range(13):
        for stop in range(start, 13):
            touched = set(shard_of[start:stop])
            expected = sum(lengths[shard] for shard in touched)
            assert num_in_whole_shards(SplitRange(split=split, start=start, stop=stop)) == expected
