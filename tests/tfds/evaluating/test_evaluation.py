"""Padded batches of real TFDS datasets: each example once over all hosts, as many steps on each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
import shardctl.tfds
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import padded_evaluation as module
from shardctl.tfds.padded_evaluation import own_host
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import (
    FOLDERS,
    Case,
    Toys,
    as_line,
    predicted,
    read_by_tfds,
    shuffled_paths,
    specs,
)
from tests.tfds_datasets import build_dataset


@st.composite
def evaluated(draw: st.DrawFn, num_hosts: Sequence[int]) -> tuple[Case, int, dict[str, Any]]:
    """Draw a case of the toys, a number of hosts, and arguments of an evaluation."""
    toy = draw(st.sampled_from([*FOLDERS, "several"]))
    spec = draw(specs(toy))
    settings = ReadSettings(
        cycle=None if toy == "ordered" else draw(st.none() | st.integers(1, 9)),
        block=draw(st.sampled_from([1, 3, 16])),
        reverse=draw(st.booleans()),
        host_by=draw(st.sampled_from(["even", "files", "examples"])),
    )
    file_order = None if settings.reverse else draw(st.none() | st.integers(0, 99))
    spec = "train+test" if spec == "all" and toy == "several" else spec
    how = {
        "devices": draw(st.integers(1, 3)),
        "batch_per_device": draw(st.integers(1, 9)),
        "padding": draw(st.sampled_from(["repeat", "zeros"])),
        "device_axis": draw(st.booleans()),
    }
    case = Case(toy=toy, spec=spec, settings=settings, file_order=file_order)
    return case, draw(st.sampled_from(num_hosts)), how


def checker(toys: Toys) -> Callable[[tuple[Case, int, dict[str, Any]]], None]:
    def check(given: tuple[Case, int, dict[str, Any]]) -> None:
        case, num_hosts, how = given
        toy, settings = toys[case.toy], case.settings
        if case.file_order is not None:
            settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
        whole = predicted(toy, case, settings)
        if whole is None:
            return
        everything = elements(read_by_tfds(toy, case, settings, whole.epoch_size), bytes.decode)
        host_batch = how["devices"] * how["batch_per_device"]
        by_host, num_steps = [], set()
        for index in range(num_hosts):
            host = Host(index=index, count=num_hosts)
            dataset = shardctl.tfds.evaluation(
                toy.builder,
                case.spec,
                replace(settings, host=host if index % 2 else None),
                host=None if index % 2 else host,
                transform=as_line,
                add_tfds_id=True,
                **how,
            )
            batches = list(dataset.as_numpy_iterator())
            assert len(dataset) == len(batches)
            num_steps.add(len(batches))
            shape = (
                (how["devices"], how["batch_per_device"]) if how["device_axis"] else (host_batch,)
            )
            assert all(part.shape == shape for batch in batches for part in batch)
            lines, mask = (
                np.concatenate([np.ravel(batch[part]) for batch in batches] or [np.array([])])
                for part in (0, 1)
            )
            mask = mask.astype(bool)
            assert not np.any(mask[1:] > mask[:-1])  # padding comes last
            own = [line.decode() for line in lines[mask]]
            padding = {line.decode() for line in lines[~mask]}
            if how["padding"] == "zeros":
                assert padding <= {""}
            else:
                reads_all = settings.host_by == "examples" or not own
                assert padding <= set(everything if reads_all else own)
                assert len(padding) <= 1
            order = predicted(toy, case, changed(settings, host=host)) if own else None
            if order is not None:
                expected = read_by_tfds(toy, case, changed(settings, host=host), order.epoch_size)
                # By even splits TFDS names folders of a host as the host's own files lie in them.
                found = [line.rpartition("/")[2] for line in own]
                assert found == elements(expected, lambda line: line.decode().rpartition("/")[2])
            by_host.append(own)
        assert sorted(line for own in by_host for line in own) == sorted(everything)
        assert num_steps == {max(-(-len(own) // host_batch) for own in by_host)}
        plan = shardctl.evaluate(
            toy.dataset,
            case.spec,
            settings,
            batch_per_device=how["batch_per_device"],
            hosts=num_hosts,
            devices=how["devices"],
            remainder="pad",
        )
        assert [len(own) for own in by_host] == plan.num_examples.tolist()
        assert set(plan.num_steps("pad").tolist()) == num_steps
        padded = plan.padding + plan.padding_batches * host_batch
        slots = num_steps.pop() * host_batch
        assert [slots - len(own) for own in by_host] == padded.tolist()

    return check


def test_each_example_comes_once_and_hosts_end_together(toys: Toys) -> None:
    check_cases(evaluated([2, 3]), checker(toys), 2)


@pytest.mark.fuzz
def test_each_example_comes_once_and_hosts_end_together_fuzzed(toys: Toys) -> None:
    check_cases(evaluated([1, 2, 3, 5, 9]), checker(toys), FUZZ // 20)


def test_what_trains_and_does_not_evaluate_is_refused(toys: Toys) -> None:
    def refused(words: str, **settings: Any) -> None:
        with pytest.raises(UsageError, match=words):
            shardctl.tfds.evaluation(toys["plain"].builder, "test", settings, batch=2)

    refused("in batches of --batch: its settings take no --shuffle-seed 1", shuffle_seed=1)
    refused("take no --buffer 3 and --epochs 2", buffer=3, epochs=2)
    refused("--batch 4 and --drop-remainder", batch=4, drop_remainder=True)
    refused(r"--stages <Pipeline read \| batch>", stages="read(test) | batch(2)")
    refused("--loop keras-fit", loop="keras-fit")
    refused("--global-seed 3", global_seed=3)
    with pytest.raises(UnpredictableOrderError, match="in order of completion"):
        refused("", deterministic=False)


def test_examples_as_x_and_y(tfds: Any, tmp_path: Path, toys: Toys) -> None:
    folder = build_dataset(
        tmp_path,
        splits={"test": [3]},
        features=tfds.features.FeaturesDict({"id": np.int64, "label": np.int64}),
        example=lambda i: {"id": i, "label": 10 * i},
    )
    info = json.loads((folder / "dataset_info.json").read_text())
    keys = {"tuple": {"items": [{"feature_key": key} for key in ("id", "label")]}}
    (folder / "dataset_info.json").write_text(json.dumps(info | {"supervisedKeys": keys}))
    builder = tfds.builder_from_directory(folder)

    def read(**arguments: Any) -> Any:
        return [
            part.tolist()
            for part in next(
                shardctl.tfds.evaluation(
                    builder, "test", batch=4, as_supervised=True, **arguments
                ).as_numpy_iterator()
            )
        ]

    mask = [True, True, True, False]
    assert read() == [[0, 1, 2, 0], [0, 10, 20, 0], mask]
    assert read(transform=lambda x, y: (x, y + x)) == [[0, 1, 2, 0], [0, 11, 22, 0], mask]
    with pytest.raises(UsageError, match="add_tfds_id=True: TFDS leaves the id out"):
        read(add_tfds_id=True)
    with pytest.raises(UsageError, match=r"toy:1.0.0 says nothing of what is x .* return"):
        shardctl.tfds.evaluation(toys["plain"].builder, batch=2, as_supervised=True)


def test_record_files_are_read_as_bytes(toys: Toys) -> None:
    assert len(shardctl.tfds.evaluation(toys["plain"].builder, batch=13)) == 1  # test, not train
    folder = toys["plain"].builder.data_dir
    builder = shardctl.tfds.record_files(f"{folder}/toy-test.tfrecord-*")
    batches = shardctl.tfds.evaluation(builder, batch=10, host="1/2").as_numpy_iterator()
    (examples, mask) = next(batches)
    assert examples["record"].shape == mask.shape == (10,)
    assert mask.sum() == 13 // 2
    with pytest.raises(UsageError, match="says nothing of what is x"):
        shardctl.tfds.evaluation(builder, batch=2, as_supervised=True)


# What a host reads: its own files alone, as many examples as the plan says, one to pad with.


LENGTHS = [3, 0, 5, 4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return build_dataset(tmp_path, splits={"test": LENGTHS, "nothing": [0, 0], "bare": []})


def ids_and_steps(folder: Path, spec: str = "test", **arguments: Any) -> tuple[list[int], int]:
    """Return the ids of the real examples, and how many steps there are."""
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    batches = shardctl.tfds.evaluation(builder, spec, **{"batch_per_device": 2, **arguments})
    elements = list(batches.as_numpy_iterator())
    return [int(i) for example, mask in elements for i in example["id"][mask]], len(elements)


def test_a_host_reads_no_file_of_another(folder: Path) -> None:
    by_files: dict[str, Any] = {"settings": {"host_by": "files"}, "hosts": 4}
    for shard in (0, 1, 2):
        (folder / f"toy-test.tfrecord-0000{shard}-of-00004").unlink()
    assert ids_and_steps(folder, host=2, **by_files) == ([8, 9, 10, 11], 3)
    # One without examples has none to repeat, and reads nothing at all where it is told to.
    assert ids_and_steps(folder, host=3, padding="zeros", **by_files) == ([], 3)


def test_more_hosts_than_files_or_examples(folder: Path) -> None:
    for host_by, steps in (("files", 3), ("examples", 1)):
        found = [
            ids_and_steps(folder, settings={"host_by": host_by}, host=f"{index}/13")
            for index in (2, 12)
        ]
        assert {num_steps for _, num_steps in found} == {steps}
        first = {"files": [[8, 9, 10, 11], []]}
        assert [ids for ids, _ in found] == first.get(host_by, [[2], []])


def test_a_spec_without_examples_has_no_steps(folder: Path) -> None:
    for spec in ("test[:0]", "nothing", "bare", "nothing+bare"):
        assert ids_and_steps(folder, spec, host="1/3", settings={"host_by": "files"}) == ([], 0)
    with pytest.raises(DatasetError, match="has no examples at all"):
        ids_and_steps(build_dataset(folder.parent / "none", splits={"test": [0]}))


def test_files_that_hold_another_number_of_examples_fail(folder: Path, tf: Any) -> None:
    other = build_dataset(folder.parent / "other", splits={"test": [3, 0, 5, 3]})
    name = "toy-test.tfrecord-00003-of-00004"
    (other / name).rename(folder / name)
    for host_by in ("even", "files", "examples"):
        with pytest.raises(
            tf.errors.FailedPreconditionError, match="expected to contain 12 elements"
        ):
            ids_and_steps(folder, host=str(Host(index=0, count=1)), settings={"host_by": host_by})


@pytest.mark.slow
def test_an_order_let_go_behind_it_loses_no_example(tfds: Any, tmp_path: Path, tf: Any) -> None:
    """Hosts of `ds.shard` share examples by the order of all, which decoding might not keep."""
    features = tfds.features.FeaturesDict(
        {"id": np.int64, "image": tfds.features.Image(shape=(None, None, 1))}
    )

    def example(i: int) -> Any:  # every seventh takes much longer to decode
        size = 400 if i % 7 == 0 else 2
        image = np.random.default_rng(i).integers(0, 256, (size, size, 1), np.uint8)
        return {"id": i, "image": image}

    folder = build_dataset(tmp_path, splits={"test": [50]}, features=features, example=example)
    options = tf.data.Options()
    options.deterministic = False
    found = []
    for index in range(2):
        batches = shardctl.tfds.evaluation(
            tfds.builder_from_directory(folder),
            "test",
            {"host_by": "examples"},
            batch=8,
            hosts=2,
            host=index,
            transform=lambda one: one["id"],
        )
        for ids, mask in batches.with_options(options).as_numpy_iterator():
            found += ids[mask].tolist()
    assert sorted(found) == list(range(50))


# Which host this process is: what the caller says, what runs here, and where they contradict.


TWO_OF_8 = Host(index=2, count=8)
ALONE, OTHER = Host(index=0, count=1), Host(index=1, count=8)


def test_a_host_is_believed_or_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(*given: Any, **by: Host) -> Host:
        monkeypatch.setattr(module, "hosts_said", lambda: iter(by.items()))
        return own_host(*given)

    assert_evaluated(globals(), "own_host", own)
