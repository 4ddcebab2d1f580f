"""All ways to read a dataset as bars."""

from __future__ import annotations

from dataclasses import replace

import pytest

import shardctl
from shardctl.planning.quality.loaders.compare import LoaderComparison, compare_loaders
from shardctl.rendering.pictures.loaders import loaders_pictures
from shardctl.rendering.pictures.picture import Box, Label, Line
from tests.planning.quality.quality_orders import even_dataset
from tests.rendering.pictures.drawn import check_labels

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def imagenet() -> LoaderComparison:
    return shardctl.compare_loaders("imagenet2012")


def test_bars_are_as_long_as_batches_have_shards(imagenet: LoaderComparison) -> None:
    (picture,) = loaders_pictures(imagenet)
    bars = [mark for mark in picture.marks if isinstance(mark, Box)]
    shards = [way.mixing.shards for way in imagenet.ways if way.mixing is not None]
    assert len(shards) == len(imagenet.ways)
    assert [bar.width / bars[0].width for bar in bars] == pytest.approx(
        [number / shards[0] for number in shards]
    )
    line = next(m for m in picture.marks if isinstance(m, Line) and m.role == "uniform")
    assert (line.points[0][0] - bars[0].x) / bars[0].width == pytest.approx(
        imagenet.uniform_shards / shards[0]
    )


def test_every_reader_has_its_whole_name(imagenet: LoaderComparison) -> None:
    (picture,) = loaders_pictures(imagenet)
    drawn = {mark.text for mark in picture.marks if isinstance(mark, Label)}
    assert {way.reader for way in imagenet.ways} <= drawn
    check_labels(picture.marks, picture.height)


def test_words_and_numbers_have_every_way_and_how_it_ends(imagenet: LoaderComparison) -> None:
    (picture,) = loaders_pictures(imagenet)
    assert len(picture.numbers.rows) == len(imagenet.ways)
    for way, row in zip(imagenet.ways, picture.numbers.rows, strict=True):
        assert way.mixing is not None
        assert row[:2] == (way.reader, f"{way.mixing.shards:.1f}")
        assert row[4] == way.mixing.verdict
        assert f"{way.reader}: {way.mixing.shards:.1f} ({way.mixing.verdict})" in (
            picture.alternative
        )
    assert picture.numbers.rows[0][5] == "last 143"  # 1,281,167 = 5,004 x 256 + 143
    assert picture.note is not None
    assert picture.note.startswith("Measured in samples")


@pytest.mark.parametrize(
    ("num_examples", "num_shards", "hosts"), [(2, 1, None), (100, 100, "0/3"), (4097, 5, "1/8")]
)
def test_small_datasets_and_hosts(num_examples: int, num_shards: int, hosts: str | None) -> None:
    settings = {} if hosts is None else {"host": hosts}
    plan = compare_loaders(even_dataset(num_examples, num_shards), "train", settings)
    (picture,) = loaders_pictures(plan)
    check_labels(picture.marks, picture.height)
    read = [way for way in plan.ways if way.refused is None]
    assert len([mark for mark in picture.marks if isinstance(mark, Box)]) == len(read)
    if hosts is not None:
        assert f"Measured on host {hosts}." in (picture.note or "")


def test_what_nobody_reads_has_words_for_bars() -> None:
    plan = compare_loaders(even_dataset(100, 4), "train")
    ways = tuple(
        replace(way, mixing=None, ending=None, refused="it cannot be") for way in plan.ways
    )
    (picture,) = loaders_pictures(replace(plan, ways=ways))
    check_labels(picture.marks, picture.height)
    assert picture.alternative == "No loader reads it so; the table says why."
    assert {row[4:] for row in picture.numbers.rows} == {("not read so", "it cannot be")}
    assert picture.note == f"{len(ways)} ways of {len(ways)} cannot read it."
