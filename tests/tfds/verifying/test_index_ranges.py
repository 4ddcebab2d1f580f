"""Index ranges in place of files: tf.data where nothing can be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.metadata.names import catalog_dataset
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from shardctl.tfds.verifying.real_files import IndexRanges, Reading
from shardctl.tfds.verifying.verify import verify
from shardctl.verbs.resume.answer import resume
from tests.oracles import interleave_by_hand

pytestmark = pytest.mark.tensorflow  # which the module under test imports


@pytest.mark.slow
def test_the_beginning_of_imagenet_over_index_ranges() -> None:
    dataset = catalog_dataset("imagenet2012")
    assert dataset is not None
    found = verify(dataset, None, ReadSettings(shuffle_seed=32), take=50_000)
    assert (found.equal, found.num_checked, len(found.windows)) == (True, 50_000, 1)
    assert found.notes[0].startswith("the files of imagenet2012:5.1.0 are not on this machine")


def test_a_reader_without_cardinality_has_none_over_index_ranges() -> None:
    """So a pass that ends with the last element does not fill the cache behind it."""
    text = "read(assert_cardinality=False) | shuffle(5, seed=1) | cache | take(7)"
    assert verify(TOY, "a", ReadSettings(stages=text, pass_index=1)).equal  # type: ignore[arg-type]


SPLITS = tuple(
    Split(name=name, shard_lengths=lengths) for name, lengths in (("a", (3, 0, 4)), ("b", (2, 5)))
)
TOY = Dataset(name="toy", splits=SPLITS)


def ranges_of(dataset: Dataset, spec: str) -> IndexRanges:
    resolved = resolve_subsplit(spec, dataset)
    names = [piece.split.name for piece in resolved.ranges]
    return IndexRanges(resolved=resolved, codes=ExampleCodes(dataset, names))


def codes_read(reading: Reading) -> list[int]:
    return [int(code) for batch in reading.elements for code in reading.codes_of(batch.numpy())]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        pytest.param({}, slice(None), id="all"),
        pytest.param({"batch": 4}, slice(None), id="in batches"),
        pytest.param({"batch": 4, "drop_remainder": True}, slice(12), id="whole batches"),
        pytest.param(
            {"host": Host(index=1, count=3), "host_by": "examples"}, slice(1, None, 3), id="a host"
        ),
    ],
)
def test_a_range_of_codes_stands_for_each_file(settings: dict[str, Any], kept: slice) -> None:
    # Split b begins where a ends: its codes are those of its ids and 7.
    firsts, lengths = [0, 3, 7, 9], [3, 4, 2, 5]
    by_hand = [firsts[shard] + offset for shard, offset in interleave_by_hand(lengths, 2, 2)]
    ranges = ranges_of(TOY, "a+b")
    reading = ranges.pipeline(ReadSettings(cycle=2, block=2, **settings))
    assert codes_read(reading) == by_hand[kept]


def test_epochs_files_and_buffers_are_those_of_the_settings() -> None:
    ranges = ranges_of(TOY, "a")
    settings = ReadSettings(shuffle_seed=3, buffer=3, buffer_seed=5, epochs=2, cycle=2, block=1)
    read = codes_read(ranges.pipeline(settings))
    assert (
        read == ReaderOrder(TOY, resolve_subsplit("a", TOY).ranges, settings).read(0, 14).tolist()
    )
    assert read[:7] != read[7:]
    assert sorted(read[:7]) == sorted(read[7:]) == list(range(7))


@pytest.mark.parametrize("consumed", [0, 1, 5, 14])
def test_a_plan_reads_the_rest(consumed: int) -> None:
    settings = ReadSettings(cycle=2, block=2)
    firsts, lengths = [0, 3, 7, 9], [3, 4, 2, 5]
    by_hand = [firsts[shard] + offset for shard, offset in interleave_by_hand(lengths, 2, 2)]
    dataset = replace(TOY, splits=tuple(map(with_names, SPLITS)))
    plan = resume(dataset, "a+b", settings, consumed=consumed)
    ranges = ranges_of(dataset, "a+b")
    assert codes_read(ranges.resumed(plan, None)) == by_hand[consumed:]


def with_names(split: Split) -> Split:
    files = ShardFiles(pattern=f"toy-{split.name}-\0", num_shards=split.num_shards)
    return replace(split, files=(files,))
