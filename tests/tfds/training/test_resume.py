"""Datasets that continue: the rest of what TFDS and tf.data hand out when nobody stops them."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl.tfds
from shardctl.order.example_codes import ExampleCodes
from shardctl.saved.resume_plan import ShuffleState
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange
from shardctl.stages.text import parse_stages
from shardctl.tfdata.shuffle_buffer import ShuffleReplay
from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds
from shardctl.tfds.builder_layout import dataset_of
from shardctl.tfds.training.records import RecordReader
from shardctl.tfds.training.resume import replayed
from shardctl.tfds.training.shuffle_kernel import kernel_shuffle
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import Case, Toys, as_line
from tests.tfdata.shuffle_oracles import tf_order
from tests.tfds_datasets import build_dataset
from tests.verbs.resume.stopped_pipelines import (
    from_a_file,
    lines_of,
    stopped,
    stopping_points,
    stops,
)

NUM_STOPS = 2  # building a dataset takes longer than reading one of a hundred examples


def check_exact(toys: Toys, case: Case, numbers: Sequence[int]) -> int:
    """Resume at places of a pipeline, by one dataset for all epochs or by one for each."""
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers[:NUM_STOPS])
    if order.settings.drop_remainder and order.settings.batch is not None:  # between batches
        places = sorted({place - place % order.settings.batch for place in places})
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place, mode="exact-order")
        plan = from_a_file(plan, toy.dataset, numbers[0])
        dataset = shardctl.tfds.resume(toy.builder, plan, transform=as_line, add_tfds_id=True)
        assert lines_of(dataset) == whole[place:], (case, place)
        if place != places[-1] or order.settings.drop_remainder:
            continue
        assert lines_of(dataset) == whole[place:], (case, place)
        by_epoch = shardctl.tfds.resume_epochs(
            toy.builder, plan, transform=as_line, add_tfds_id=True
        )
        parts = [(epoch, lines_of(dataset)) for epoch, dataset in by_epoch]
        assert [line for _, part in parts for line in part] == whole[place:], (case, place)
        assert [epoch for epoch, _ in parts] == list(
            range(plan.epoch, plan.epoch + 1 + plan.num_further_epochs)
        )
    return len(places)


def check_exactly_once(toys: Toys, case: Case, numbers: Sequence[int]) -> int:
    """Resume in another order: all that is left of the epoch once, further ones as they were."""
    toy = toys[case.toy]
    case = replace(
        case, settings=changed(case.settings, batch=None, drop_remainder=False, repeat_files=False)
    )
    found = stopped(toy, case, numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = stopping_points(order, numbers[:NUM_STOPS])
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        dataset = shardctl.tfds.resume(toy.builder, plan, transform=as_line, add_tfds_id=True)
        lines, left = lines_of(dataset), whole[place:]
        assert Counter(lines[: plan.remaining]) == Counter(left[: plan.remaining]), (case, place)
        assert lines[plan.remaining :] == left[plan.remaining :], (case, place)
    return len(places)


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [False, True])
def test_it_continues_as_the_uninterrupted_pipeline(toys: Toys, buffered: bool) -> None:
    check_cases(stops(buffered=buffered), lambda drawn: check_exact(toys, *drawn), 2)


@pytest.mark.slow
def test_exactly_once_reads_all_that_is_left(toys: Toys) -> None:
    check_cases(stops(buffered=True), lambda drawn: check_exactly_once(toys, *drawn), 2)


@pytest.mark.fuzz
@pytest.mark.parametrize(
    ("check", "buffered", "share"),
    [(check_exact, False, 8), (check_exact, True, 4), (check_exactly_once, True, 8)],
)
def test_datasets_that_continue_fuzzed(toys: Toys, check: Any, buffered: bool, share: int) -> None:
    drawn = stops(buffered=buffered)
    check_cases(drawn, lambda one: check(toys, *one), FUZZ // share)


SETTINGS = ReadSettings(
    cycle=3, block=2, shuffle_seed=5, buffer=9, buffer_seed=1, epochs=3, batch=4
)


@pytest.mark.slow
@pytest.mark.parametrize(("host_by", "consumed"), [("even", [40, 31, 33]), ("files", [24, 9, 60])])
def test_other_hosts_read_what_is_left_and_then_whole_epochs(
    toys: Toys, host_by: Any, consumed: list[int]
) -> None:
    toy = toys["plain"]
    settings = changed(SETTINGS, host_by=host_by, batch=None)
    read: list[str] = []
    for index, count in enumerate(consumed):
        own = changed(settings, host=Host(index=index, count=3))
        found = stopped(toy, Case(toy="plain", spec="train", settings=own), 0)
        assert found is not None
        read += found[1][:count]
    plan = resume_on_hosts(toy.dataset, "train", settings, hosts=3, to_hosts=2, consumed=consumed)
    for host in range(2):
        dataset = shardctl.tfds.resume(
            toy.builder, plan, host=host, transform=as_line, add_tfds_id=True
        )
        lines = lines_of(dataset)
        own = changed(settings, host=Host(index=host, count=2))
        found = stopped(toy, Case(toy="plain", spec="train", settings=own), 0)
        assert found is not None
        last = found[0].epoch_size
        assert lines[-last:] == found[1][2 * last :]
        read += lines
    assert len(read) == 3 * 75
    assert set(Counter(read).values()) == {3}


@pytest.mark.parametrize(
    ("stages", "spec", "whole"),
    [
        pytest.param(
            *("shard({1}, {0}) | cache | shuffle(9, seed=1) | batch(2) | repeat(3)", "train", 3),
            marks=pytest.mark.slow,
        ),
        ("read(train, host='{0}/{1}', shuffle_seed=3) | repeat(2) | shuffle(8, seed=2)", None, 2),
        (
            "sample_from_datasets([read(train[:40], host='{0}/{1}'), read(train[40:]) | "
            "shard({1}, {0})], weights=[0.4, 0.6], seed=5) | batch(2)",
            None,
            1,
        ),
    ],
)
def test_other_hosts_of_stages_read_what_tensorflow_had_left(
    toys: Toys, stages: str, spec: str | None, whole: int
) -> None:
    toy, consumed = toys["plain"], [24, 10, 16]
    read: list[int] = []
    for index, count in enumerate(consumed):
        settings = ReadSettings(cycle=3, block=2, stages=parse_stages(stages.format(index, 3)))
        real = shardctl.tfds.pipeline(toy.builder, spec, settings)
        examples = real.unbatch() if "batch" in stages else real
        read += elements(examples.take(count), lambda example: int(example["id"]))
    given = ReadSettings(cycle=3, block=2, stages=parse_stages(stages.format(1, 3)))
    plan = resume_on_hosts(toy.dataset, spec, given, hosts=3, to_hosts=2, consumed=consumed)
    for host in range(2):
        rest = shardctl.tfds.resume(toy.builder, plan, host=host)
        examples = rest.unbatch() if "batch" in stages else rest
        read += elements(examples, lambda example: int(example["id"]))
    assert Counter(read) == Counter(dict.fromkeys(range(75), whole))


def test_a_log_of_what_was_seen_leaves_every_other_example_once(toys: Toys) -> None:
    toy = toys["plain"]
    seen = [*range(0, 75, 2), 3, 3]
    plan = resume_unseen(toy.dataset, "train", SETTINGS, seen=seen, to_hosts=2)
    found = []
    for host in range(2):
        dataset = shardctl.tfds.resume(toy.builder, plan, host=host)
        found += elements(dataset.unbatch(), lambda example: int(example["id"]))
    assert sorted(found) == [i for i in range(75) if i % 2 and i != 3]


def test_exact_order_is_the_rest_of_a_shuffled_pipeline(toys: Toys) -> None:
    toy = toys["plain"]
    whole = list(shardctl.tfds.pipeline(toy.builder, "train", SETTINGS).as_numpy_iterator())
    rest = shardctl.tfds.exact_order(toy.builder, "train", SETTINGS, consumed=4 * 25)
    assert [batch["id"].tolist() for batch in rest.as_numpy_iterator()] == [
        batch["id"].tolist() for batch in whole[25:]
    ]
    assert int(rest.cardinality()) == len(whole) - 25


@pytest.mark.slow
def test_no_python_is_left_in_what_continues_through_a_buffer(tf: Any, toys: Toys) -> None:
    """The graph runs in a process that has nothing of this one, and reads the same there."""
    rest = shardctl.tfds.exact_order(toys["plain"].builder, "train", SETTINGS, consumed=4 * 7)
    graph = tf.raw_ops.DatasetToGraphV2(input_dataset=tf.data.experimental.to_variant(rest))
    definition = tf.compat.v1.GraphDef.FromString(graph.numpy())
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    assert not [node.op for node in nodes if "Py" in node.op]
    assert "ShuffleDataset" in {node.op for node in nodes}
    rebuilt = tf.raw_ops.DatasetFromGraph(graph_def=graph)
    there = tf.data.experimental.from_variant(rebuilt, rest.element_spec)
    expected = [batch["id"].tolist() for batch in rest.as_numpy_iterator()]
    assert [batch["id"].tolist() for batch in there.as_numpy_iterator()] == expected != []


@pytest.fixture(scope="module")
def structured(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the builder of 12 examples, ragged, nested, of several sizes and over 1 kB."""
    features = tfds.features.FeaturesDict(
        {
            "id": np.int64,
            "photo": tfds.features.Image(shape=(None, None, 3), encoding_format="png"),
            "words": tfds.features.Sequence(tfds.features.Sequence(tfds.features.Text())),
            "parts": {"box": tfds.features.BBoxFeature(), "tags": tfds.features.Sequence(np.int64)},
            "steps": tfds.features.Dataset({"reward": np.float32}),
        }
    )

    noise = np.random.default_rng(0).integers(0, 256, (20, 20, 3), np.uint8)

    def example(i: int) -> dict[str, Any]:
        return {
            "id": i,
            "photo": noise[: 18 + i % 3],
            "words": [[f"{i}.{j}"] * j for j in range(i % 4)],
            "parts": {
                "box": tfds.features.BBox(ymin=0.0, xmin=0.0, ymax=1 / (1 + i), xmax=1.0),
                "tags": [i] * (i % 3),
            },
            "steps": [{"reward": i + j} for j in range(i % 3)],
        }

    folder = build_dataset(
        tmp_path_factory.mktemp("structured"),
        splits={"train": [5, 0, 7]},
        features=features,
        example=example,
    )
    return tfds.builder_from_directory(folder)


def as_lists(value: Any) -> Any:
    """Return an element with its tensors, ragged ones and datasets as lists."""
    if isinstance(value, dict):
        return {name: as_lists(part) for name, part in value.items()}
    if hasattr(value, "to_list"):
        return value.to_list()
    if hasattr(value, "numpy"):
        found = value.numpy()
        return found if isinstance(found, bytes) else found.tolist()
    return [as_lists(element) for element in value]


@pytest.mark.slow
def test_examples_are_decoded_as_tfds_decodes_them(tfds: Any, structured: Any) -> None:
    settings = ReadSettings(cycle=2, block=1, buffer=4, buffer_seed=3)
    for decoders in (
        {"photo": tfds.decode.SkipDecoding()},
        tfds.decode.PartialDecoding({"parts": {"tags"}}),
    ):
        how: dict[str, Any] = {"decoders": decoders, "add_tfds_id": True}
        whole = shardctl.tfds.pipeline(structured, "train", settings, **how)
        rest = shardctl.tfds.exact_order(structured, "train", settings, consumed=6, **how)
        assert rest.element_spec == whole.element_spec
        assert [*map(as_lists, rest)] == [*map(as_lists, whole)][6:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("buffer", "consumed"),
    [
        # It was just filled; later; nothing is left to read, or only the next epoch.
        pytest.param(4, [1, 5, 11, 12], id="a buffer"),
        pytest.param(500, [5], id="a buffer of everything"),
        pytest.param(1, [7], id="a buffer that holds nothing"),
    ],
)
def test_examples_of_any_structure_go_on_through_a_buffer(
    structured: Any, buffer: int, consumed: list[int]
) -> None:
    settings = ReadSettings(
        cycle=2, block=3, shuffle_seed=3, buffer=buffer, buffer_seed=3, epochs=2
    )
    whole = shardctl.tfds.pipeline(structured, "train", settings, add_tfds_id=True)
    expected = [as_lists(example) for example in whole]
    assert any(len(example["words"]) > 1 for example in expected)
    for place in consumed:
        rest = shardctl.tfds.exact_order(
            structured, "train", settings, consumed=place, add_tfds_id=True
        )
        assert rest.element_spec == whole.element_spec
        assert [as_lists(example) for example in rest] == expected[place:]


# Records as they lie in TFDS's files, and the shuffle that takes any seeds.


@pytest.mark.parametrize(("num_elements", "buffer_size"), [(0, 3), (20, 1), (20, 7), (20, 99)])
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 2])
def test_the_seeds_of_the_kernel_give_the_order_of_the_seed_of_a_shuffle(
    tf: Any, num_elements: int, buffer_size: int, seed: int
) -> None:
    seeds = shuffle_kernel_seeds(seed, None)
    pair = tf.constant([seeds.seed, seeds.seed2], tf.int64)
    shuffled = kernel_shuffle(tf.data.Dataset.range(num_elements), buffer_size, pair)
    expected = tf_order(num_elements, buffer_size, seed)
    together = shuffled.batch(99)
    for _ in range(2):  # every iterator has the same order
        assert [number for batch in together for number in batch.numpy().tolist()] == expected


def test_rows_of_a_file_that_are_read_together_are_interleaved_as_one_file(
    tfds: Any, tmp_path: Path
) -> None:
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [9, 4, 7]}))
    dataset = dataset_of(builder)
    # Of ids 0-8, 9-12 and 13-19: 1, 2 and 5 of the first file, then 10, then 8 and 13, 14, 19.
    rows = [(0, 1, 2), (0, 5, 1), (1, 1, 1), (0, 8, 1), (2, 0, 2), (2, 6, 1)]
    shard, skip, take = np.array(rows, np.int64).T
    none = np.zeros_like(shard)
    reads = Reads(files=dataset, part=none, split=none, shard=shard, skip=skip, take=take)
    codes = ExampleCodes(dataset, ["train"], reads)
    reader = RecordReader(builder=builder, codes=codes, cycle=2, block=2, with_ids=True)
    records = reader.in_files(reads, np.array([2, 1, 1, 2], np.int64))
    ids = [int(example["id"]) for example in reader.decode(records)]
    names = [example["tfds_id"].numpy().decode() for example in reader.decode(records)]
    # Blocks of 2 in turn: a file that ends within its block gives its slot to the next.
    assert ids == [1, 2, 10, 5, 8, 13, 14, 19]
    assert names == codes.tfds_ids(ids)
    whole = reader.in_files(reads, np.ones(6, np.int64))
    assert sorted(int(example["id"]) for example in reader.decode(whole)) == sorted(ids)
    assert list(reader.in_files(reads.select(slice(0, 0)), np.empty(0, np.int64))) == []


@pytest.fixture(scope="module")
def pieces(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The builder of a file of several pieces, and of others."""
    splits = {"train": [2500, 0, 3, 40]}
    folder = build_dataset(tmp_path_factory.mktemp("pieces"), splits=splits)
    return tfds.builder_from_directory(folder)


@pytest.mark.parametrize("with_ids", [False, True])
def test_chosen_records_come_with_the_ranks_of_their_codes(
    tf: Any, pieces: Any, *, with_ids: bool
) -> None:
    """Of a file of several pieces, of one that is read to its end, and one of them twice."""
    dataset = dataset_of(pieces)
    train = dataset.splits[0]
    reads = reads_of(dataset, [SplitRange(split=train, start=0, stop=train.num_examples)])
    reader = RecordReader(
        builder=pieces,
        codes=ExampleCodes(dataset, ["train"]),
        cycle=16,
        block=16,
        with_ids=with_ids,
    )
    codes = [3, 4, 4, 1023, 1024, 2499, 2500, 2502, 2539]
    found = {}
    for records, ranks in reader.chosen(reads, np.array(codes)).as_numpy_iterator():
        serialized, ids = records if with_ids else (records, [b""] * len(records))
        for record, tfds_id, rank in zip(serialized, ids, ranks.tolist(), strict=True):
            assert rank not in found
            number = int(pieces.info.features.deserialize_example(record)["id"])
            found[rank] = number, tfds_id.decode()
    assert [found[rank][0] for rank in range(len(codes))] == codes
    if with_ids:
        places = [(0, 3), (0, 4), (0, 4), (0, 1023), (0, 1024), (0, 2499), (2, 0), (2, 2), (3, 36)]
        assert [found[rank][1] for rank in range(len(codes))] == [
            f"toy-train.tfrecord-{shard:05}-of-00004__{index}" for shard, index in places
        ]


# A shuffle that continues from where its buffer stood is the rest of TensorFlow's own.


SEED = 7


def stopped_at(num_elements: int, buffer_size: int, emitted: int) -> tuple[ShuffleState, list[int]]:
    """Return where a shuffle stands after so many outputs, and what its buffer holds."""
    given: Any = {"num_elements": num_elements, "buffer_size": buffer_size}
    given["seeds"] = shuffle_kernel_seeds(SEED, None)
    num_read = ShuffleReplay(**given).num_read(emitted)
    gone = set(tf_order(num_elements, buffer_size, SEED)[:emitted])
    state = ShuffleState(**given, num_read=num_read, emitted=emitted)
    return state, [position for position in range(num_read) if position not in gone]


def records(tf: Any, positions: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices(
        tf.constant([f"record {position}" for position in positions], tf.string)
    )


def as_it_is(records: Any, **_: Any) -> Any:
    return records


def held_records(tf: Any, positions: list[int]) -> Any:
    """Return what the buffer held as the files give it: in pieces, in no useful order."""
    back = tf.data.Dataset.from_tensor_slices(np.arange(len(positions))[::-1])
    return tf.data.Dataset.zip((records(tf, positions[::-1]), back)).batch(3)


@pytest.mark.parametrize(
    ("num_elements", "buffer_size", "emitted"),
    [
        pytest.param(40, 7, 0, id="nothing was read", marks=pytest.mark.slow),
        pytest.param(40, 7, 1, id="the buffer was just filled", marks=pytest.mark.slow),
        pytest.param(40, 7, 20, id="in the middle"),
        pytest.param(40, 7, 37, id="the buffer runs empty", marks=pytest.mark.slow),
        pytest.param(40, 7, 40, id="the end"),
        pytest.param(40, 100, 3, id="a buffer of everything", marks=pytest.mark.slow),
        pytest.param(40, 1, 20, id="a buffer of one"),
        pytest.param(900, 300, 450, id="several pieces", marks=pytest.mark.slow),
    ],
)
def test_the_rest_of_a_shuffle_is_what_tensorflow_would_have_handed_out(
    tf: Any, num_elements: int, buffer_size: int, emitted: int
) -> None:
    """Handed out twice at once."""
    state, inside = stopped_at(num_elements, buffer_size, emitted)
    codes = np.array([1000 + position for position in inside], np.int64)
    rest = records(tf, range(state.num_read, num_elements))
    held = held_records(tf, inside) if inside else None
    found = replayed(rest, held, codes, state, num_elements, as_it_is)
    expected = records(tf, tf_order(num_elements, buffer_size, SEED)[emitted:])
    both = itertools.zip_longest(found.as_numpy_iterator(), found.as_numpy_iterator())
    assert list(both) == [(record, record) for record in expected.as_numpy_iterator()]


PLACES = st.integers(1, 700).flatmap(
    lambda size: st.tuples(st.just(size), st.integers(1, size + 50), st.integers(0, size))
)


@pytest.mark.fuzz
def test_random_places_of_a_shuffle_fuzzed(tf: Any) -> None:
    check = test_the_rest_of_a_shuffle_is_what_tensorflow_would_have_handed_out
    check_cases(PLACES, lambda place: check(tf, *place), FUZZ // 40)


def test_an_example_that_the_buffer_held_twice_comes_twice(tf: Any) -> None:
    state, inside = stopped_at(40, 7, 20)
    # Two positions of a sum that reads one example twice: one code, of which the files give two.
    codes = [5, 5, *range(10, 10 + len(inside) - 2)]
    texts = ["record twice", *(f"record {position}" for position in inside[2:])]
    ranks = np.arange(len(codes))
    held = tf.data.Dataset.from_tensor_slices(([texts[0], *texts], ranks)).batch(4)
    rest = records(tf, range(state.num_read, 40))
    found = list(replayed(rest, held, np.array(codes), state, 40, as_it_is).as_numpy_iterator())
    expected = [
        "record twice" if position in inside[:2] else f"record {position}"
        for position in tf_order(40, 7, SEED)[20:]
    ]
    assert [record.decode() for record in found] == expected


@pytest.mark.parametrize("missing", ["rest", pytest.param("held", marks=pytest.mark.slow)])
def test_files_that_hold_fewer_examples_than_stated_are_an_error(tf: Any, missing: str) -> None:
    state, inside = stopped_at(40, 7, 20)
    rest = records(tf, range(state.num_read, 38 if missing == "rest" else 40))
    kept = inside[1:] if missing == "held" else inside
    found = replayed(rest, held_records(tf, kept), np.array(inside), state, 40, as_it_is)
    with pytest.raises(tf.errors.OpError, match="fewer examples than the metadata says"):
        list(found.as_numpy_iterator())
