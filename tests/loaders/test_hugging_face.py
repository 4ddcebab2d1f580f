"""Hugging Face Datasets: buffers, eras, tables, how shards are shared, and what is refused."""

from __future__ import annotations

from itertools import zip_longest
from random import Random
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.loaders.hugging_face import hugging_face_sequence, stream_of
from shardctl.loaders.hugging_face_eras import ERAS, changed_between, era_of, of_tables  # noqa: F401  # era_of: in the golden file
from shardctl.loaders.hugging_face_streams import Stream, by_halves, one_for_one
from shardctl.loaders.loader_sequence import LoaderConfig, in_turn
from tests.cases import add_cases
from tests.golden import assert_evaluated
from tests.loaders.agreement import check_agreement
from tests.loaders.hugging_face_chains import recorded

STREAM: dict[str, Any] = {"streaming": True, "seed": 3, "buffer": 16}
LENGTHS = (101, 57, 230, 12, 300, 99, 41)


def asked(version: str = "5.2.0", lengths: Any = (8, 4), **settings: Any) -> LoaderConfig:
    return LoaderConfig(lengths=np.array(lengths, np.int64), version=version, **settings)


def order_of(config: LoaderConfig) -> list[int]:
    found = hugging_face_sequence(config)
    order: list[int] = found.indices_at(np.arange(found.num_examples)).tolist()
    return order


def replaced(stream: list[int], size: int, rng: np.random.Generator) -> list[int]:
    """`BufferShuffledExamplesIterable.__iter__` of datasets 4.8."""
    drawn: list[int] = []
    held: list[int] = []
    out: list[int] = []
    for example in stream:
        if len(held) < size:
            held.append(example)
            continue
        drawn = drawn or rng.integers(0, size, size=1000).tolist()
        place = drawn.pop(0)
        out.append(held[place])
        held[place] = example
    rng.shuffle(held)
    return out + held


def halved(blocks: list[list[int]], size: int, rng: np.random.Generator) -> list[int]:
    """`BufferShuffledExamplesIterable._iter_arrow` of datasets 5.2, a block a table."""
    held: list[int] = []
    out: list[int] = []
    for block in blocks:
        held += block
        if len(held) >= size:
            mixed = [held[place] for place in rng.permutation(len(held))]
            count = len(held) - size // 2
            out += mixed[:count]
            held = mixed[count:]
    return out + [held[place] for place in rng.permutation(len(held))] if held else out


@pytest.mark.parametrize("seed", range(40))
def test_buffers_do_what_the_loops_do(seed: int) -> None:
    random = Random(seed)
    stream = list(range(random.choice((0, 1, 2, 30, 999, 2500))))
    size = random.choice((1, 2, 3, 10, 100, 1000, 3000))
    expected = replaced(stream, size, np.random.default_rng(seed))
    assert one_for_one(np.array(stream), size, np.random.default_rng(seed)).tolist() == expected

    ends = sorted({*random.choices(range(1, len(stream) + 1), k=9), len(stream)} if stream else [])
    starts = [0, *ends[:-1]]
    blocks = [stream[start:end] for start, end in zip(starts, ends, strict=False)]
    lengths = np.array([len(block) for block in blocks], np.int64)
    for of_library, ours in ((blocks, lengths), ([[one] for one in stream], None)):
        expected = halved(of_library, size, np.random.default_rng(seed))
        found = by_halves(np.array(stream, np.int64), ours, size, np.random.default_rng(seed))
        assert found.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_streams_are_read_in_turn_until_all_have_ended(seed: int) -> None:
    random = Random(seed)
    block = random.choice((1, 2, 5, 100))
    streams = [[random.random() for _ in range(random.randrange(12))] for _ in range(seed % 5)]
    rounds = zip_longest(
        *([stream[at : at + block] for at in range(0, len(stream), block)] for stream in streams)
    )
    blocks = [piece for turn in rounds for piece in turn if piece]
    order, lengths = in_turn([np.array(stream) for stream in streams], block)
    assert order.tolist() == [example for piece in blocks for example in piece]
    assert lengths.tolist() == [len(piece) for piece in blocks]


def changed(old: str, new: str, pipeline: dict[str, object]) -> list[str]:
    stream = {"shuffle_seed": 3, "buffer": 16, "epochs": 1, "pass": 0, "host": None}
    said = changed_between(old, new, {**stream, **pipeline})
    return [era.since for era in ERAS if era.since in said]


def test_which_files_are_streamed_as_tables() -> None:
    def tables(file_format: str, **more: Any) -> bool:
        return of_tables(asked("5.2.0", LENGTHS, file_format=file_format, **more))

    formats = ("parquet", "arrow", "tfrecord", "array_record", "webdataset", "mds")
    assert [name for name in formats if tables(name)] == ["parquet", "arrow"]
    assert not [name for name in formats if tables(name, arrow=False)]
    assert all(tables(name, arrow=True) for name in formats)


def test_rows_are_shuffled_otherwise_than_tables() -> None:
    files: dict[str, Any] = {"lengths": LENGTHS, "file_format": "parquet", "seed": 3, "buffer": 100}
    assert order_of(asked(**files, arrow=False)) != order_of(asked(**files))
    assert order_of(asked(**files, arrow=True)) == order_of(asked(**files))


def test_epochs_follow_one_another() -> None:
    kinds: tuple[dict[str, Any], ...] = ({"streaming": True, "buffer": 3}, {})
    for streams in kinds:
        both = order_of(asked(seed=1, first_epoch=4, epochs=2, **streams))
        apart = [order_of(asked(seed=1, first_epoch=epoch, **streams)) for epoch in (4, 5)]
        assert both == apart[0] + apart[1]


def test_a_dataset_has_one_order_in_all_epochs() -> None:
    assert order_of(asked(seed=1, epochs=2)) == 2 * order_of(asked(seed=1, first_epoch=7))


@pytest.mark.parametrize("streams", [{}, {"streaming": True}, STREAM])
@pytest.mark.parametrize("lengths", [(), (1,), (0, 1), (0,)])
def test_little_or_nothing_is_read_as_it_is(
    lengths: tuple[int, ...], streams: dict[str, Any]
) -> None:
    shards = np.array(lengths, np.int64)
    question = asked(
        lengths=tuple(length for length in lengths if length), shard_lengths=shards, **streams
    )
    assert order_of(question) == list(range(sum(lengths)))


def test_an_empty_shard_is_a_shard() -> None:
    full = asked(lengths=(2, 3, 4), streaming=True, shares=True, num_hosts=2)
    empty = np.array([2, 0, 3, 4])
    with_one = asked(
        lengths=(2, 3, 4), streaming=True, shares=True, num_hosts=2, shard_lengths=empty
    )
    assert order_of(full) == [0, 2, 4, 6, 8]  # 3 shards: by stride
    assert order_of(with_one) == [0, 1, 2, 3, 4]  # 4 shards: the first and the third


def test_what_the_library_refuses_is_refused_by_name() -> None:
    assert_evaluated(globals(), "refused_by_hf")


def test_a_buffer_without_a_seed_is_open() -> None:
    with pytest.raises(UnpredictableOrderError, match="--shuffle-seed"):
        hugging_face_sequence(asked(buffer=16))


def streaming(version: str, num_shards: int, **settings: Any) -> Stream:
    given: dict[str, Any] = {
        "lengths": np.full(num_shards, 5),
        "version": version,
        "streaming": True,
    }
    found = stream_of(LoaderConfig(**given, **settings))
    assert found is not None
    return found


def test_chains_are_read_as_versions_read_them() -> None:
    versions = set()
    for version, text, config, batches in recorded():
        batched = config.batch is not None or "batch(" in text
        found = hugging_face_sequence(config)
        check_agreement(found, batches, config.num_examples, batched=batched)
        versions.add(version)
        add_cases()
    assert len(versions) >= 4


@pytest.mark.parametrize("version", ["3.6.0", "4.8.5", "5.0.0", "5.2.0"])
@pytest.mark.parametrize("num_shards", [1, 3, 12])
@pytest.mark.parametrize("hosts", [1, 2, 3])
@pytest.mark.parametrize("workers", [0, 2, 5])
def test_hosts_and_workers_read_every_example_once(
    version: str, num_shards: int, hosts: int, workers: int
) -> None:
    read = []
    for host in range(hosts):
        given = {"shares": True, "host": host, "num_hosts": hosts}
        found = streaming(version, num_shards, seed=1, buffer=7, **given).workers(2, workers)
        orders = [node.read() for node in found if node]
        assert [len(order) for order in orders] == [node.count() for node in found if node]
        assert len(found) == max(1, workers)
        read += [index for order in orders for index in order.tolist()]
    assert sorted(read) == list(range(5 * num_shards))


def test_workers_without_a_shard_are_idle() -> None:
    assert streaming("5.2.0", 3).workers(0, 5).count(None) == 2
    assert streaming("5.0.0", 12, seed=1).workers(0, 5).count(None) == 4
    assert streaming("5.2.0", 12, seed=1).workers(0, 5).count(None) == 0
