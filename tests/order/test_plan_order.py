"""From a spec to an order: what it keeps, what it warns of, what is refused, what readers read."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.dataset.dataset import COUNTED_FILES, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.order.plan_order import order_of, plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.resolved_spec import refuse_open_hosts, resolved_spec
from shardctl.order.sources import progress_of
from shardctl.order.staged import StagedOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HOST_MODES, Host
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages
from shardctl.verbs.resume.hosts import resume_on_hosts
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.tfds_datasets import build_dataset


def even(**sizes: tuple[int, int]) -> Dataset:
    """Return a dataset of splits of (examples, shards)."""
    made = [Split.even(name=n, num_examples=e, num_shards=s) for n, (e, s) in sizes.items()]
    return Dataset(name="d", splits=tuple(made))


TWO = even(train=(10, 3), test=(5, 2), extra=(2, 1))
BY_EXAMPLES = ReadSettings(cycle=2, block=1, host=Host(index=1, count=2), host_by="examples")


def test_an_order_keeps_the_ranges_and_what_it_was_resolved_to() -> None:
    planned = plan_order(TWO, "test+train[3:]", BY_EXAMPLES)
    pieces = [(piece.split.name, piece.start, piece.stop) for piece in planned.ranges]
    assert pieces == [("test", 0, 5), ("train", 3, 10)]
    assert planned.splits.names == ("train", "test")  # as the dataset has them
    by_hand = ReaderOrder(TWO, planned.ranges, BY_EXAMPLES)
    np.testing.assert_array_equal(planned.order.read(0, 6), by_hand.read(0, 6))
    first = plan_order(TWO, "test+train[3:]", ReadSettings())
    other = first.with_settings(BY_EXAMPLES)
    assert other.resolved is first.resolved
    assert (other.warnings, other.order) == (planned.warnings, planned.order)
    assert plan_order(TWO, None).spec == "train"
    assert plan_order(even(test=(1, 1)), None).spec == "test"


# Splits that TFDS orders anew in each run.


def folders(**splits: tuple[int, ...]) -> Dataset:
    """Return a dataset with each split in a folder of its own."""
    made = []
    for name, lengths in splits.items():
        files = ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths), data_dir=f"/{name}")
        made.append(Split(name=name, shard_lengths=lengths, files=(files,)))
    return Dataset(name="d", splits=tuple(made))


@pytest.mark.parametrize(
    ("spec", "way_out"),
    [
        ("all", "test+train"),
        ("train[:2]+all", "train[:2]+test+train"),
        ("all+train[1shard]", "test+train+train[1shard]"),
    ],
)
def test_an_open_order_of_splits_is_refused_with_the_splits_spelled_out(
    spec: str, way_out: str
) -> None:
    dataset = folders(test=(3,), train=(4, 2))
    with pytest.raises(UnpredictableOrderError, match=re.escape(f"as in '{way_out}'")):
        plan_order(dataset, spec, ReadSettings())
    # What depends on no order is answered, and warned of; only whole files in turn depend on it.
    resolved = resolved_spec(dataset, spec)
    said = f"they are listed here as '{way_out}', which is how to fix their order"
    assert said in resolved.warnings[0]
    with pytest.raises(UnpredictableOrderError):
        refuse_open_hosts(resolved, HOST_MODES["files"], 2)
    for mode, num_hosts in (("files", 1), ("even", 2), ("examples", 2)):
        refuse_open_hosts(resolved, HOST_MODES[mode], num_hosts)
    spelled = plan_order(dataset, way_out, ReadSettings(cycle=1))
    assert spelled.order.num_examples == resolved.num_examples
    assert not any("several folders" in warning for warning in spelled.warnings)


@pytest.mark.parametrize(
    ("dataset", "spec"),
    [
        (folders(train=(3, 4)), "all"),
        (folders(train=(3, 4), test=(0,)), "all"),  # one split with examples
        (folders(train=(3,), test=(4,)), "train+test"),
        (TWO, "all"),  # one folder
    ],
)
def test_all_is_no_open_order_where_one_order_is_possible(dataset: Dataset, spec: str) -> None:
    planned = plan_order(dataset, spec, ReadSettings())
    assert planned.warnings == ()
    assert planned.order.num_examples == planned.resolved.num_examples


@pytest.mark.slow  # two processes with TFDS, which finds the files of a split without TensorFlow
@pytest.mark.tensorflow
def test_tfds_reads_all_of_several_folders_in_another_order_in_each_run(tmp_path: Path) -> None:
    first = build_dataset(tmp_path / "a", splits={"train": [3], "test": [2]}, with_files=False)
    second = build_dataset(tmp_path / "b", splits={"extra": [4]}, with_files=False)
    code = (
        "import json, sys, tensorflow_datasets as tfds\n"
        "files = tfds.builder_from_directories(sys.argv[1:]).info.splits['all'].file_instructions\n"
        "print(json.dumps([file.filename for file in files]))"
    )
    command = [sys.executable, "-c", code, str(first), str(second)]
    one, other = (
        json.loads(subprocess.check_output(command, env={**os.environ, "PYTHONHASHSEED": seed}))
        for seed in ("0", "1")  # of the hashes of text, which a run without one draws
    )
    assert len(one) == 3
    assert sorted(one) == sorted(other)
    assert one != other


# Files that TFDS cannot read back.

REFUSED = "as_dataset does not read array_record files: it raises NotImplementedError"
SHORT = "train: as TFDS writes it, a file of 214 examples holds 114 rows"


def written_as(file_format: str, length: int = 214) -> Dataset:
    template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    of: dict[str, Any] = {"dataset": "d", "split": "train", "file_format": file_format}
    files = ShardFiles.from_template(template, num_shards=2, data_dir=None, **of)
    splits = [Split(name="train", shard_lengths=(length, length), files=(files,))]
    splits.append(Split(name="test", shard_lengths=(40,)))
    return Dataset(name="d", splits=tuple(splits), file_format=file_format)


@pytest.mark.parametrize(
    "promise",
    [
        plan_order,
        shardctl.simulate,
        snapshot,
        lambda dataset: shardctl.quality(dataset, what_if=False),
        lambda dataset: shardctl.hosts(dataset, "train", hosts=2),
        lambda dataset: shardctl.evaluate(dataset, "train", batch=8),
    ],
)
def test_every_promise_says_what_the_files_may_not_keep(promise: Callable[[Dataset], Any]) -> None:
    said = promise(written_as("array_record")).warnings
    assert sum(REFUSED in line and "as_data_source" in line for line in said) == 1
    said = promise(written_as("parquet")).warnings
    assert sum(SHORT in line and "shardctl verify --files" in line for line in said) == 1
    for sound in (written_as("parquet", 100), written_as("tfrecord"), written_as("riegeli")):
        assert not any("as_dataset" in line for line in promise(sound).warnings)


@pytest.mark.parametrize(
    "plan",
    [
        lambda dataset: shardctl.resume(dataset, "train", consumed=3),
        lambda dataset: resume_on_hosts(dataset, "train", hosts=2, to_hosts=1, consumed=3),
        lambda dataset: shardctl.resume_unseen(dataset, "train", seen=[1]),
    ],
)
def test_resume_refuses_what_no_reader_of_tf_data_can_do(plan: Callable[[Dataset], Any]) -> None:
    with pytest.raises(DatasetError, match=f"d: {REFUSED}.*as_data_source.*as tfrecord"):
        plan(written_as("array_record"))
    assert any(SHORT in line for line in plan(written_as("parquet")).warnings)
    assert plan(written_as("tfrecord")).warnings == ()
    for other in ("mds", "webdataset", "arrow"):
        with pytest.raises(DatasetError, match=f"d: TFDS does not read {other} files.*tfrecord"):
            plan(written_as(other))
        (said,) = plan_order(written_as(other)).warnings
        assert said.startswith(f"TFDS does not read {other} files, so this is the order of ")


# Files that a script lists itself: the same order as the real list_files, or a warning.


def files_named(names: list[str], lengths: list[int], origin: str = COUNTED_FILES) -> Dataset:
    files = ShardFiles(names=tuple(names), num_shards=len(names))
    split = Split(name="train", shard_lengths=tuple(lengths), files=(files,))
    return Dataset(name="d", splits=(split,), origin=origin)


def write_files(tf: Any, folder: Path, names: list[str], lengths: list[int]) -> None:
    """Write files of records "0", "1", .. counted over all of them."""
    firsts = np.cumsum([0, *lengths]).tolist()
    for name, first, length in zip(names, firsts, lengths, strict=False):
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for example in range(first, first + length):
                writer.write(str(example).encode())


def check_listed(tf: Any, folder: Path, rng: random.Random) -> int:
    """Compare two iterations of a random pipeline over listed files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    # Names in the order of their numbers, which need not be that of bytes.
    name = rng.choice(["train-{}.tfrecord", "part-{:03}.tfrecord", "{}.tfrecord", "t-{}-of-N"])
    names = [name.format(index) for index in range(rng.randint(1, 13))]
    lengths = [rng.randint(1, 5) for _ in names]
    write_files(tf, folder, names, lengths)
    cycle, block, parallel = rng.randint(1, 6), rng.randint(1, 4), rng.choice([None, -1])
    seed = rng.choice([None, rng.randint(0, 99)])
    listed = tf.data.Dataset.list_files(f"{folder}/*", shuffle=seed is not None, seed=seed)
    dataset = listed.interleave(
        tf.data.TFRecordDataset,
        cycle_length=cycle,
        block_length=block,
        num_parallel_calls=parallel,
        deterministic=True if parallel else None,
    )
    in_bytes = sorted(names, key=str.encode)
    file_order = None if in_bytes == names else tuple(in_bytes)
    settings: dict[str, Any] = {"cycle": cycle, "block": block, "shuffle_seed": seed}
    settings["file_order"] = file_order
    for index in range(2):
        planned = plan_order(
            files_named(names, lengths), "train", {**settings, "pass_index": index}
        )
        assert planned.warnings == ()
        real = [int(example) for example in dataset.as_numpy_iterator()]
        assert planned.order.read(0, sum(lengths)).tolist() == real
    return 2


def test_the_order_of_list_files_is_that_of_the_files_by_their_bytes(
    tf: Any, tmp_path: Path
) -> None:
    rngs = st.randoms(use_true_random=False)
    check_cases(rngs, lambda rng: check_listed(tf, tmp_path / "files", rng), 8)


@pytest.mark.fuzz
def test_random_list_files(tf: Any, tmp_path: Path) -> None:
    rngs = st.randoms(use_true_random=True)
    check_cases(rngs, lambda rng: check_listed(tf, tmp_path / "files", rng), FUZZ // 4)


def test_numbers_of_several_widths_are_warned_of() -> None:
    names = ["t-1", "t-2", "t-10"]
    dataset = files_named(names, [1, 1, 1])
    (warning,) = plan_order(dataset).warnings
    assert warning == (
        "train: files are in the order of their numbers, 't-2' before 't-10'; tf.data's list_files "
        "and sorted() have them the other way round: a list in their order, as --file-order FILE, "
        "is what such a script reads"
    )
    stages = {"stages": "shuffle(2, seed=1) | batch(2) | shuffle(2, seed=2)"}
    assert plan_order(dataset, "train", stages).warnings == (warning,)
    assert plan_order(dataset, "train", {"file_order": sorted(names)}).warnings == ()
    assert plan_order(files_named(["t-01", "t-02", "t-10"], [1, 1, 1])).warnings == ()
    assert plan_order(files_named(names, [1, 1, 1], origin="builder")).warnings == ()


def test_files_without_examples_are_warned_of(tf: Any, tmp_path: Path) -> None:
    names, lengths = ["a", "b", "c"], [2, 0, 2]
    (warning,) = plan_order(files_named(names, lengths)).warnings
    assert warning.startswith("train: 1 file has no examples; TFDS's reader skips such files")
    write_files(tf, tmp_path, names, lengths)
    listed = tf.data.Dataset.list_files(f"{tmp_path}/*", shuffle=False)
    read = listed.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=1)
    predicted = plan_order(files_named(names, lengths), "train", {"cycle": 2, "block": 1}).order
    assert predicted.read(0, 4).tolist() == [0, 2, 1, 3]
    assert list(read.as_numpy_iterator()) == [b"0", b"1", b"2", b"3"]


# What readers of stages read.

MIXED = (
    "sample_from_datasets([train[:50%] | map | repeat, read(test, data='imagenet2012')], seed=1)"
)


def test_splits_of_several_datasets_are_called_by_both() -> None:
    one = plan_order("mnist", None, {"stages": "zip(train, test | repeat) | batch(4)"})
    assert (one.order.dataset, one.spec) == (shardctl.read_dataset("mnist"), "train, test")
    assert one.order.codes.names([0, 60_000]) == ["train:0", "test:0"]
    planned = plan_order("mnist", None, {"stages": MIXED})
    assert planned.spec == "mnist/train[:50%], imagenet2012/test"
    codes, read = planned.order.codes, planned.order.read(0, 50)
    assert planned.order.dataset.title == "mnist:3.0.1 + imagenet2012:5.1.0"
    names, tfds_ids = codes.names(read), codes.tfds_ids(read)
    assert {name.partition(":")[0] for name in names} == {"mnist/train", "imagenet2012/test"}
    assert [codes.parse(name) for name in names] == read.tolist()
    assert [codes.parse_tfds_id(name) for name in tfds_ids] == read.tolist()
    assert tfds_ids[names.index("mnist/train:0")] == "mnist-train.tfrecord-00000-of-00001__0"
    # Other settings are resolved from what was given.
    later = planned.with_settings({"stages": MIXED, "cycle": 1})
    assert later.order.dataset == planned.order.dataset
    assert planned.dataset_as_given.name == "mnist"
    assert list(planned.datasets_by_ref) == ["imagenet2012"]
    plain = order_of(planned.resolved, shardctl.ReadSettings())
    assert (plain.spec, plain.order.dataset.name) == ("train", "mnist")


def test_what_surprises_and_what_is_refused_is_said() -> None:
    assert_evaluated(globals(), "said")
    plain = ReadSettings(shuffle_seed=1, buffer=3, buffer_seed=4, global_seed=5)
    assert plan_order(TWO, "train", plain).warnings == ()


def test_the_short_form_of_a_reader_with_a_dataset_of_its_own() -> None:
    settings = {"stages": "read(test, data='mnist') | shuffle(10, seed=1) | batch(4)"}
    planned = plan_order("imagenet2012", None, settings)
    assert not isinstance(planned.order, StagedOrder)
    assert (planned.spec, planned.order.dataset.name) == ("test", "mnist")
    assert planned.order.settings == shardctl.ReadSettings(buffer=10, buffer_seed=1, batch=4)


# What it takes to follow a pipeline, said before it is begun.


def is_followed(text: str, size: int = 1000, pass_index: int = 0) -> bool:
    stages = parse_stages(text)
    sizes = dict.fromkeys(readers_of(stages), size)
    return progress_of(stages, sizes, pass_index) is not None


def test_mixtures_and_filters_are_followed_one_by_one() -> None:
    for text in ("repeat(10_000_000_000) | batch(4)", "shuffle(9, seed=1) | map | repeat(9)"):
        assert not is_followed(text)
    mixture = "sample_from_datasets([a | repeat(10), b | repeat(90)], seed=1)"
    for text in (mixture, "filter(kept=x) | repeat(3)", "concatenate(a | filter(kept=x))"):
        assert is_followed(text)
    with pytest.raises(UsageError, match=r"100,000,000,000 examples .* about 1 day, .* take\(N\)"):
        is_followed(mixture, size=10**9)
    assert is_followed(f"{mixture} | batch(10) | take(100)", size=10**9)
    with pytest.raises(UsageError, match="100,000,000,000 examples"):
        is_followed(f"{mixture} | batch(1000) | batch(1000) | take(100_000)", size=10**9)


@pytest.mark.parametrize("text", ["{}", "concatenate(a | {})"])
def test_what_has_more_positions_than_there_are_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="positions go up to"):
        is_followed(text.format("repeat(9_000_000_000_000_000_000)"))
    assert not is_followed(text.format("repeat(9_000_000_000_000_000)"))
