"""Datasets that continue: the rest of what TFDS and tf.data hand out when nobody stops them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.answer import resume, resume_unseen
from shardctl.verbs.resume.hosts import resume_on_hosts
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import Case, Toys, as_line
from tests.tfds_datasets import build_dataset
from tests.verbs.resume.stopped_pipelines import (
    from_a_file,
    lines_of,
    stopped,
    stopping_points,
    stops,
)

NUM_STOPS = 2  # building a dataset takes longer than reading one of a hundred examples


def places_to_stop(order: Order, numbers: Sequence[int]) -> list[int]:
    """Return stopping points; where the last batch is dropped, between batches."""
    places = stopping_points(order, numbers)
    batch = order.settings.batch
    if order.settings.drop_remainder and batch is not None:
        places = sorted({place - place % batch for place in places})
    return places


def check_exact(toys: Toys, case: Case, numbers: Sequence[int]) -> int:
    """Resume at places of a pipeline, by one dataset for all epochs or by one for each."""
    toy = toys[case.toy]
    found = stopped(toy, case, 0 if case.settings.repeat_files else numbers[0] % 2)
    if found is None:
        return 0
    order, whole = found
    places = places_to_stop(order, numbers)
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
    places = stopping_points(order, numbers)
    for place in places:
        plan = resume(toy.dataset, case.spec, order.settings, consumed=place)
        dataset = shardctl.tfds.resume(toy.builder, plan, transform=as_line, add_tfds_id=True)
        lines, left = lines_of(dataset), whole[place:]
        assert Counter(lines[: plan.remaining]) == Counter(left[: plan.remaining]), (case, place)
        assert lines[plan.remaining :] == left[plan.remaining :], (case, place)
    return len(places)


def check_stops(
    check: Callable[[Case, list[int]], int], buffered: bool, num_cases: int, *, fuzz: bool = False
) -> None:
    def one(drawn: tuple[Case, list[int]]) -> int:
        case, numbers = drawn
        return check(case, numbers[:NUM_STOPS])

    check_cases(stops(buffered=buffered), one, num_cases, fuzz=fuzz)


@pytest.mark.slow
@pytest.mark.parametrize("buffered", [False, True])
def test_it_continues_as_the_uninterrupted_pipeline(toys: Toys, buffered: bool) -> None:
    check_stops(partial(check_exact, toys), buffered, 2)


@pytest.mark.slow
def test_exactly_once_reads_all_that_is_left(toys: Toys) -> None:
    check_stops(partial(check_exactly_once, toys), True, 2)


@pytest.mark.fuzz
def test_datasets_that_continue_fuzzed(toys: Toys) -> None:
    check_stops(partial(check_exact, toys), False, FUZZ // 8, fuzz=True)
    check_stops(partial(check_exact, toys), True, FUZZ // 4, fuzz=True)
    check_stops(partial(check_exactly_once, toys), True, FUZZ // 8, fuzz=True)


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
        ("shard({1}, {0}) | cache | shuffle(9, seed=1) | batch(2) | repeat(3)", "train", 3),
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


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["train.tfrecord-00000-of-00002", "train.tfrecord-00001-of-00002"])
def test_files_shorter_than_their_metadata_are_an_error(
    tf: Any, tfds: Any, tmp_path: Path, cut: str
) -> None:
    """The first file holds what is in the buffer, the second what follows."""
    settings = ReadSettings(cycle=1, buffer=40, buffer_seed=1)
    folder = build_dataset(tmp_path / "whole", splits={"train": [30, 30]})
    short = build_dataset(tmp_path / "short", splits={"train": [5, 5]})
    (folder / f"toy-{cut}").write_bytes((short / f"toy-{cut}").read_bytes())
    dataset = shardctl.tfds.exact_order(
        tfds.builder_from_directory(folder), "train", settings, consumed=5
    )
    with pytest.raises(tf.errors.OpError, match="fewer examples than the metadata says"):
        list(dataset.as_numpy_iterator())


@pytest.mark.slow
def test_examples_are_decoded_as_tfds_decodes_them(tfds: Any, tmp_path: Path) -> None:
    import numpy as np

    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(shape=(2, 2, 1)),
            "boxes": tfds.features.Sequence({"x": np.float32, "name": tfds.features.Text()}),
        }
    )

    def example(i: int) -> dict[str, Any]:
        boxes = [{"x": i + j / 2, "name": f"{i}.{j}"} for j in range(i % 3)]
        return {"image": np.full((2, 2, 1), i, np.uint8), "boxes": boxes}

    folder = build_dataset(tmp_path, splits={"train": [5, 9]}, features=features, example=example)
    builder = tfds.builder_from_directory(folder)
    settings = ReadSettings(cycle=2, block=1, buffer=4, buffer_seed=3)
    for decoders in (
        None,
        {"image": tfds.decode.SkipDecoding()},
        tfds.decode.PartialDecoding({"boxes": {"x"}}),
    ):
        whole = shardctl.tfds.pipeline(
            builder, "train", settings, decoders=decoders, add_tfds_id=True
        )
        rest = shardctl.tfds.exact_order(
            builder, "train", settings, consumed=6, decoders=decoders, add_tfds_id=True
        )
        assert rest.element_spec == whole.element_spec
        expected = [*whole.as_numpy_iterator()][6:]
        np.testing.assert_equal([*rest.as_numpy_iterator()], expected)


@pytest.fixture(scope="module")
def structured(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the builder of 12 examples, ragged, nested, of several sizes and over 1 kB."""
    import numpy as np

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
