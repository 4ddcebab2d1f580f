"""What every host reads: against examples listed by hand, TFDS's splits, and tf.data's reading."""

from __future__ import annotations

import os
import random
from collections import Counter
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.spec.host import HOST_MODES, HostBy
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange, file_instructions, resolve_subsplit
from tests.cases import FUZZ, add_cases, check_cases, counted, random_of_a_fuzz_run
from tests.spec.hosts.host_cases import HostCase, host_cases
from tests.spec.tfds_splits import (
    random_layout,
    random_spec,
    tfds_reads,
    tfds_splits,
    toy_dataset,
)
from tests.strategies import error_line
from tests.tfds_datasets import build_dataset, read_ids

STRATEGIES: tuple[HostBy, ...] = ("even", "files", "examples")


def _reads_of(dataset: Dataset, spec: str, strategy: HostBy, num_hosts: int) -> HostReads:
    ranges = resolve_subsplit(spec, dataset).ranges
    return HOST_MODES[strategy].host_reads(
        SharedReads(reads_of(dataset, ranges), ranges), num_hosts
    )


def _check_by_hand(case: HostCase) -> None:
    mode = HOST_MODES[case.strategy]
    found = mode.host_reads(SharedReads(case.table, case.ranges), case.num_hosts)
    hosts = case.reads()
    files = [{example[:2] for example in chain(*reads)} for reads in hosts]
    assert found.num_instructions.tolist() == [len(reads) for reads in hosts]
    assert found.num_files.tolist() == [len(names) for names in files]
    assert found.num_shared_files == sum(n > 1 for n in Counter(chain(*files)).values())
    # A file is read from its first example to the last one that is wanted.
    assert found.num_read.tolist() == [sum(i[-1][2] + 1 for i in reads) for reads in hosts]
    handed_out = [len(list(chain(*reads))) for reads in hosts]
    if case.strategy == "examples":
        everything = list(chain(*hosts[0]))
        handed_out = [len(everything[i :: case.num_hosts]) for i in range(case.num_hosts)]
    assert found.num_examples.tolist() == handed_out
    counted = mode.num_examples(SharedReads(case.table, case.ranges), case.num_hosts)
    assert counted.tolist() == handed_out
    num_bytes = [case.num_bytes(reads) for reads in hosts]
    if found.num_bytes is not None:
        assert found.num_bytes.tolist() == num_bytes
    else:
        assert None in [case.num_bytes(reads) for reads in [list(chain(*hosts))]]


def test_figures_are_those_of_examples_listed_by_hand() -> None:
    check_cases(host_cases(), _check_by_hand, 50)


@pytest.mark.fuzz
def test_figures_are_those_of_many_more_examples_listed_by_hand() -> None:
    check_cases(host_cases(), _check_by_hand, FUZZ, fuzz=True)


def test_figures_of_all_sums_of_two_slices_of_three_files() -> None:
    """Of a split, or of two whose sizes are stated as a whole."""
    dataset = Dataset(
        name="toy",
        splits=(
            Split(name="train", shard_lengths=(1, 2), num_bytes=100),
            Split(name="test", shard_lengths=(2,), num_bytes=70),
        ),
    )
    slices = [
        (split, start, stop)
        for split, num_examples in enumerate((3, 2))
        for start, stop in combinations(range(num_examples + 1), 2)
    ]
    for one, other, strategy in counted(product(slices, slices, STRATEGIES)):
        for num_hosts in (1, 2, 3):
            _check_by_hand(
                HostCase(
                    dataset=dataset,
                    slices=(one, other),
                    num_hosts=num_hosts,
                    strategy=strategy,
                    reverse=False,
                )
            )


def test_one_table_serves_many_numbers_of_hosts() -> None:
    """As each number asked alone, and its sums as those of slices."""
    rng = np.random.default_rng(3)
    lengths = tuple(rng.integers(0, 9, 3000).tolist())
    ranges = resolve_subsplit("train[:60%]+train[40%:]", toy_dataset({"train": lengths})).ranges
    dataset = Dataset(name="toy", splits=(ranges[0].split,))
    reads = reads_of(dataset, ranges)
    shared, num_cases = SharedReads(reads, ranges), 0
    for num_hosts in (1, 2, 3, 64, 1000, 1025, 2999, 5000):
        by_files = shared.by_files(num_hosts)
        sums = [int(reads.take[host::num_hosts].sum()) for host in range(num_hosts)]
        assert by_files.num_examples.tolist() == sums
        turns = np.arange(len(reads)) % num_hosts
        assert by_files == shared.by_rows(turns, num_hosts)
        for mode in HOST_MODES.values():
            alone = mode.host_reads(SharedReads(reads, ranges), num_hosts)
            assert mode.host_reads(shared, num_hosts) == alone
            num_cases += 1
    add_cases(num_cases)


def test_what_a_host_skips_in_a_file_is_read() -> None:
    one_file = Dataset(name="d", splits=(Split(name="train", shard_lengths=(60,), num_bytes=600),))
    even = _reads_of(one_file, "train", "even", 3)
    assert even.num_examples.tolist() == [20, 20, 20]
    assert even.num_read.tolist() == [20, 40, 60]
    assert even.num_bytes is not None
    assert even.num_bytes.tolist() == [200, 400, 600]


def test_ds_shard_reads_the_data_once_a_host() -> None:
    train = Split.even(name="train", num_examples=1_281_167, num_shards=1024)
    shards = _reads_of(Dataset(name="d", splits=(train,)), "train", "examples", 64)
    assert shards.num_read.tolist() == [1_281_167] * 64
    assert shards.num_examples.sum() == 1_281_167


def test_bytes_beyond_a_float_are_exact() -> None:
    size = 2**62 + 1
    train = Split(name="train", shard_lengths=(3,), shard_bytes=(size,))
    reads = _reads_of(Dataset(name="d", splits=(train,)), "train", "files", 1)
    assert reads.num_bytes is not None
    assert reads.num_bytes.tolist() == [size]


# TFDS


@pytest.mark.fuzz
def test_many_more_shares_are_those_of_tfds() -> None:
    _check_shares(FUZZ, random_of_a_fuzz_run())


def test_even_and_file_shares_are_those_of_tfds() -> None:
    _check_shares(200, random.Random(5))


def _check_shares(most: int, rng: random.Random) -> None:
    """Compare the shares of so many random specs with TFDS's."""
    pytest.importorskip("tensorflow_datasets")
    import tensorflow_datasets as tfds

    num_cases = 0
    while num_cases < most:
        layout = random_layout(rng)
        dataset, splits = toy_dataset(layout), tfds_splits(layout)
        spec, num_hosts = random_spec(rng, layout), rng.choice([1, 2, 3, 5, 8, 13])
        if error_line(lambda s=spec, d=dataset: resolve_subsplit(s, d)) is not None:  # type: ignore[misc]
            continue
        whole = tfds_reads(splits, spec)
        if not whole:
            continue
        num_cases += 1
        even = [tfds_reads(splits, part) or [] for part in tfds.even_splits(spec, num_hosts)]
        files = [whole[index::num_hosts] for index in range(num_hosts)]
        for strategy, hosts in zip(STRATEGIES, (even, files), strict=False):
            said = f"{layout}, {spec!r}, {num_hosts} hosts by {strategy}"
            found = _reads_of(dataset, spec, strategy, num_hosts)
            num_examples = [sum(r[2] for r in reads) for reads in hosts]
            assert found.num_examples.tolist() == num_examples, said
            num_read = [sum(r[1] + r[2] for r in reads) for reads in hosts]
            assert found.num_read.tolist() == num_read, said
            num_files = [len({r[0] for r in reads}) for reads in hosts]
            assert found.num_files.tolist() == num_files, said
    add_cases(num_cases)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tensorflow_datasets")
    return build_dataset(tmp_path_factory.mktemp("data"), splits={"train": [5, 0, 7, 3, 9, 1]})


def _as_dataset(folder: Path, split: Any = "train", **read_config: Any) -> Any:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    config = tfds.ReadConfig(try_autocache=False, **read_config)
    return builder.as_dataset(split=split, read_config=config, shuffle_files=False)


def _context(num_hosts: int, index: int) -> Any:
    import tensorflow as tf

    return tf.distribute.InputContext(num_input_pipelines=num_hosts, input_pipeline_id=index)


def test_hosts_read_what_real_pipelines_hand_out(toy: Path) -> None:
    import tensorflow_datasets as tfds

    dataset, num_cases = read_tfds_folder(toy), 0
    for spec, num_hosts in (("train", 3), ("train[3:20]", 2), ("train[8:]+train[:6]", 2)):
        parts, whole = tfds.even_splits(spec, num_hosts), _as_dataset(toy, spec)
        handed_out: dict[HostBy, list[int]] = {
            "even": [len(read_ids(_as_dataset(toy, part))) for part in parts],
            "files": [
                len(read_ids(_as_dataset(toy, spec, input_context=_context(num_hosts, i))))
                for i in range(num_hosts)
            ],
            "examples": [len(read_ids(whole.shard(num_hosts, i))) for i in range(num_hosts)],
        }
        for strategy, counts in handed_out.items():
            found = _reads_of(dataset, spec, strategy, num_hosts)
            assert found.num_examples.tolist() == counts
            num_cases += num_hosts
    add_cases(num_cases)


def test_tf_data_reads_what_it_skips_and_what_other_hosts_get() -> None:
    tf = pytest.importorskip("tensorflow")
    rng = random.Random(1)
    num_cases = 0
    for _ in range(6):
        lengths = tuple(rng.randint(0, 9) for _ in range(rng.randint(1, 4)))
        if sum(lengths) < 4:
            continue
        dataset, num_hosts = toy_dataset({"train": lengths}), rng.randint(1, 4)
        split = dataset.splits[0]
        whole = SplitRange(split=split, start=0, stop=sum(lengths))
        shares = np.array_split(np.arange(sum(lengths)), num_hosts)
        for strategy in STRATEGIES[::2]:  # "even" and "examples"
            found = _reads_of(dataset, "train", strategy, num_hosts)
            for host in range(num_hosts):
                part = whole
                if strategy == "even":
                    ids = shares[host]
                    part = SplitRange(split=split, start=int(ids[0]), stop=int(ids[-1]) + 1)
                counted: list[int] = []
                pieces = [
                    _counted_file(tf, i.examples_in_shard, counted).skip(i.skip).take(i.take)
                    for i in file_instructions([part])
                ]
                read = pieces[0]
                for piece in pieces[1:]:
                    read = read.concatenate(piece)
                if strategy == "examples":
                    read = read.shard(num_hosts, host)
                assert sum(1 for _ in read) == found.num_examples[host]
                assert len(counted) == found.num_read[host]
                num_cases += 1
    add_cases(num_cases)


def _counted_file(tf: Any, length: int, counted: list[int]) -> Any:
    """Return a dataset that notes each example that is read from it."""

    def note(index: Any) -> Any:
        counted.append(int(index))
        return index

    return tf.data.Dataset.range(length).map(lambda i: tf.py_function(note, [i], tf.int64))


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts bytes read as Linux does")
@pytest.mark.parametrize(("skip", "take"), [(0, 4000), (3000, 1), (2000, 999)])
def test_record_files_are_read_from_their_start(tmp_path: Path, skip: int, take: int) -> None:
    tf = pytest.importorskip("tensorflow")
    path = tmp_path / "records"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for _ in range(4000):
            writer.write(os.urandom(1000))
    buffer_size = 64 * 1024
    before = _bytes_read()
    records = tf.data.TFRecordDataset(str(path), buffer_size=buffer_size).skip(skip).take(take)
    assert sum(1 for _ in records) == take
    read, size = _bytes_read() - before, path.stat().st_size
    # Give or take a buffer; skipping leaves out parts of a record that no buffer holds.
    assert abs(read - size * (skip + take) / 4000) < 0.03 * size + 2 * buffer_size


def _bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])


def test_tfds_refuses_more_hosts_than_files_and_splits_without_examples(toy: Path) -> None:
    import tensorflow_datasets as tfds

    with pytest.raises(ValueError, match="Cannot shard the pipeline"):
        _as_dataset(toy, input_context=_context(6, 0))  # 5 of the 6 files hold examples
    assert _as_dataset(toy, input_context=_context(5, 4)) is not None
    with pytest.raises(ValueError, match="corresponds to no data"):
        _as_dataset(toy, tfds.even_splits("train", 26)[25])
