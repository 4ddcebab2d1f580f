"""Hosts and what each reads: against examples listed by hand, TFDS's splits, tf.data's reading."""

from __future__ import annotations

import functools
import random
from collections import Counter
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import (
    DEFAULT_HOST_MODE,
    HOST_MODES,
    Host,
    HostBy,
    HostMode,
    even_range,
    even_split,
)
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.reads import reads_of
from shardctl.spec.subsplit import SplitRange, file_instructions, resolve_subsplit
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.hosts.view import sweep_table
from shardctl.verbs.lint.answer import lint
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.proof import prove
from tests.cases import FUZZ, add_cases, check_cases, counted
from tests.golden import assert_evaluated
from tests.spec.host_cases import HostCase, host_cases
from tests.spec.tfds_splits import (
    random_layout,
    random_spec,
    reads,
    tfds_reads,
    tfds_runs_backwards,
    tfds_splits,
    toy_dataset,
)
from tests.strategies import error_line
from tests.tfds_datasets import build_dataset, read_ids

STRATEGIES: tuple[HostBy, ...] = ("even", "files", "examples")
NUM_HOSTS = (1, 2, 3, 5, 8)


# Hosts, written I/N.


def test_what_is_a_host_and_what_is_none() -> None:
    assert_evaluated(globals(), "hosts")
    split = toy_dataset({"train": (3,)}).split("train")
    whole = [SplitRange(split=split, start=0, stop=3)]
    assert error_line(lambda: even_split(whole, 3, 3)) == "host 3 of 3: hosts count from 0 to 2"


def test_a_host_reads_back_from_its_text() -> None:
    def check(case: tuple[int, int]) -> None:
        host = Host(index=min(case), count=max(case) + 1)
        assert Host.parse(str(host)) == Host.parse(f"0{host.index}/0{host.count}") == host

    check_cases(st.tuples(*[st.integers(0, 10**6)] * 2), check, 200)


# Even splits.


def shares(num_examples: int, count: int, drop_remainder: bool) -> list[int]:
    parts = [even_range(5, 5 + num_examples, i, count, drop_remainder) for i in range(count)]
    sizes = [len(part) for part in parts]
    assert [*chain(*parts)] == list(range(5, 5 + sum(sizes)))
    return sizes


def test_hosts_read_what_tfds_even_splits_reads() -> None:
    import tensorflow_datasets as tfds

    rng = random.Random(3)
    num_cases, num_read = 1000, 0
    for _ in counted(range(num_cases)):
        layout = random_layout(rng)
        splits, dataset = tfds_splits(layout), toy_dataset(layout)
        spec = random_spec(rng, layout)
        count, drop_remainder = rng.choice([1, 2, 3, 7, 64]), rng.random() < 0.5
        index = rng.randrange(count)
        theirs = tfds.even_splits(spec, n=count, drop_remainder=drop_remainder)[index]
        expected = tfds_reads(splits, theirs)
        if error_line(functools.partial(resolve_subsplit, spec, dataset)) is not None:
            # Both refuse, backwards slices too: even_splits asserts that a part does not end
            # before it starts.
            assert expected is None, (layout, spec)
            continue
        assert not tfds_runs_backwards(splits, spec)
        ranges = resolve_subsplit(spec, dataset).ranges
        part = even_split(ranges, index, count, drop_remainder=drop_remainder)
        assert reads(file_instructions(part)) == expected, (layout, spec, index, count)
        num_read += bool(expected)
    assert num_read > num_cases / 5 or FUZZ < 100  # of a few random ones nobody knows


# Figures of what hosts read.


def _reads_of(dataset: Dataset, spec: str, strategy: str, num_hosts: int) -> HostReads:
    ranges = resolve_subsplit(spec, dataset).ranges
    shared = SharedReads(reads_of(dataset, ranges), ranges)
    return HOST_MODES[strategy].host_reads(shared, num_hosts)


def _check_by_hand(case: HostCase) -> None:
    mode = HOST_MODES[case.strategy]
    found = mode.host_reads(SharedReads(case.table, case.ranges), case.num_hosts)
    by_host = case.reads()
    files = [{example[:2] for example in chain(*reads)} for reads in by_host]
    assert found.num_instructions.tolist() == [len(reads) for reads in by_host]
    assert found.num_files.tolist() == [len(names) for names in files]
    assert found.num_shared_files == sum(n > 1 for n in Counter(chain(*files)).values())
    # A file is read from its first example to the last one that is wanted.
    assert found.num_read.tolist() == [sum(i[-1][2] + 1 for i in reads) for reads in by_host]
    handed_out = [len(list(chain(*reads))) for reads in by_host]
    if case.strategy == "examples":
        everything = list(chain(*by_host[0]))
        handed_out = [len(everything[i :: case.num_hosts]) for i in range(case.num_hosts)]
    assert found.num_examples.tolist() == handed_out
    if found.num_bytes is not None:
        assert found.num_bytes.tolist() == [case.num_bytes(reads) for reads in by_host]
    else:
        assert case.num_bytes(list(chain(*by_host))) is None


def test_figures_are_those_of_examples_listed_by_hand() -> None:
    check_cases(host_cases(), _check_by_hand, 50)


@pytest.mark.fuzz
def test_figures_are_those_of_many_more_examples_listed_by_hand() -> None:
    check_cases(host_cases(), _check_by_hand, FUZZ)


def test_figures_of_all_sums_of_two_slices_of_three_files() -> None:
    train = Split(name="train", shard_lengths=(1, 2), num_bytes=100)
    test = Split(name="test", shard_lengths=(2,), num_bytes=70)
    dataset = Dataset(name="toy", splits=(train, test))
    slices = [
        (split, start, stop)
        for split, num_examples in enumerate((3, 2))
        for start, stop in combinations(range(num_examples + 1), 2)
    ]
    for *both, strategy, num in counted(product(slices, slices, STRATEGIES, (1, 2, 3))):
        slices_ = tuple(both)
        _check_by_hand(HostCase(dataset=dataset, slices=slices_, num_hosts=num, strategy=strategy))


@pytest.mark.parametrize(
    ("split", "strategy", "num_examples", "num_read", "num_bytes"),
    [
        # What a host skips in a file is read; ds.shard reads the data once a host.
        (
            Split(name="a", shard_lengths=(60,), num_bytes=600),
            *("even", [20, 20, 20], [20, 40, 60], [200, 400, 600]),
        ),
        (Split(name="a", shard_lengths=(5, 2)), "examples", [3, 2, 2], [7, 7, 7], None),
        # Bytes beyond a float are exact.
        (
            Split(name="a", shard_lengths=(3,), shard_bytes=(2**62 + 1,)),
            *("files", [3], [3], [2**62 + 1]),
        ),
    ],
)
def test_figures_of_named_cases(
    split: Split, strategy: str, num_examples: Any, num_read: Any, num_bytes: Any
) -> None:
    dataset = Dataset(name="d", splits=(split,))
    found = _reads_of(dataset, "a", strategy, len(num_examples))
    assert (found.num_examples.tolist(), found.num_read.tolist()) == (num_examples, num_read)
    assert num_bytes == (None if found.num_bytes is None else found.num_bytes.tolist())


# TensorFlow and TFDS.


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tensorflow_datasets")
    return build_dataset(tmp_path_factory.mktemp("data"), splits={"train": [5, 0, 7, 3, 9, 1]})


def _as_dataset(folder: Path, split: Any = "train", **read_config: Any) -> Any:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    config = tfds.ReadConfig(try_autocache=False, **read_config)
    return builder.as_dataset(split=split, read_config=config, shuffle_files=False)


def _read_by(folder: Path, word: str, count: int, index: int, spec: str = "train") -> Any:
    """Return what TFDS and tf.data make of a host, called by hand."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    if word == "even":
        return _as_dataset(folder, tfds.even_splits(spec, count)[index])
    if word == "files":
        context = tf.distribute.InputContext(num_input_pipelines=count, input_pipeline_id=index)
        return _as_dataset(folder, spec, input_context=context)
    return _as_dataset(folder, spec).shard(count, index)


@pytest.mark.parametrize("word", HOST_MODES)
def test_a_mode_is_what_tfds_and_tf_data_do(tf: Any, toy: Path, word: str) -> None:
    mode, dataset = HOST_MODES[word], read_tfds_folder(toy)
    for spec, count in (("train", 3), ("train[3:20]", 2), ("train[8:]+train[:6]", 2)):
        read = [_read_by(toy, word, count, index, spec) for index in range(count)]
        sizes = [len(read_ids(each)) for each in read]
        assert _reads_of(dataset, spec, word, count).num_examples.tolist() == sizes
        known = int(read[0].cardinality()) != tf.data.UNKNOWN_CARDINALITY
        assert known == mode.knows_length
        add_cases(count)
    for count in (4, 5, 6, 25, 26):  # of five files with 25 examples
        num_idle = 0 if mode.whole_files else max(0, count - 25)
        refused = mode.refusal(count, num_idle=num_idle, num_files=5)
        if refused is None:
            _read_by(toy, word, count, count - 1)
        else:
            with pytest.raises(ValueError, match=r"Cannot shard|corresponds to no data"):
                _read_by(toy, word, count, count - 1)
        assert mode.refuses_files(5, count) == (mode.whole_files and refused is not None)


def test_tf_data_reads_what_it_skips_and_what_other_hosts_get() -> None:
    tf = pytest.importorskip("tensorflow")
    counted: list[int] = []

    def note(index: Any) -> Any:
        counted.append(int(index))
        return index

    def counted_file(length: int) -> Any:
        return tf.data.Dataset.range(length).map(lambda i: tf.py_function(note, [i], tf.int64))

    for lengths, num_hosts in (((9, 0, 4), 3), ((2, 7, 5, 1), 2)):
        dataset = toy_dataset({"train": lengths})
        whole = resolve_subsplit("train", dataset).ranges
        for strategy in ("even", "examples"):
            found = _reads_of(dataset, "train", strategy, num_hosts)
            for host in range(num_hosts):
                parts = even_split(whole, host, num_hosts) if strategy == "even" else whole
                read = tf.data.Dataset.range(0)
                for i in file_instructions(parts):
                    file = counted_file(i.examples_in_shard).skip(i.skip).take(i.take)
                    read = read.concatenate(file)
                if strategy == "examples":
                    read = read.shard(num_hosts, host)
                counted.clear()
                assert sum(1 for _ in read) == found.num_examples[host]
                assert len(counted) == found.num_read[host]
                add_cases(1)


# Modes: what each says of itself, and that one class is enough.


def test_the_words_are_those_of_the_registry_and_of_the_guide() -> None:
    assert get_args(HostBy) == tuple(HOST_MODES) == tuple(m.word for m in HOST_MODES.values())
    assert ReadSettings().host_mode is HOST_MODES[DEFAULT_HOST_MODE]
    guide = (Path(shardctl.__file__).parent / "guide" / "orders.md").read_text("utf-8")
    lines = guide.replace("\\|", "|").splitlines()
    (row,) = (line for line in lines if line.startswith("| `--host I/N`"))
    assert f"`--host-by {'|'.join(HOST_MODES)}`" in row
    for mode in HOST_MODES.values():
        call = "ReadConfig.input_context" if mode.call == "InputContext" else mode.call
        assert f"`{call}`" in row


@pytest.mark.parametrize("mode", HOST_MODES.values(), ids=HOST_MODES)
def test_hosts_together_read_everything_once(mode: HostMode) -> None:
    train = Split.even(name="train", num_examples=40, num_shards=9)
    whole = [SplitRange(split=train, start=0, stop=40)]
    assert mode.ranges(whole, None) is whole
    for count in (None, *NUM_HOSTS):  # a reader alone reads everything
        read: list[tuple[int, int]] = []
        for index in range(count or 1):
            host = None if count is None else Host(index=index, count=count)
            (piece,) = mode.ranges(whole, host)
            files = range(9)[mode.own_instructions(9, host)]
            stride, phase = mode.stride_and_phase(host)
            read += [*product(files, range(piece.start, piece.stop)[phase::stride])]
        assert sorted(read) == [*product(range(9), range(40))]


class Blocks(HostMode):
    """A toy mode: each host is given a block of neighbouring files."""

    word = "blocks"
    call = "blocks_of_files"
    whole_files = True

    def own_instructions(self, num_files: int, host: Host | None) -> slice:
        if host is None:
            return slice(None)
        start, stop = (num_files * i // host.count for i in (host.index, host.index + 1))
        return slice(start, stop)

    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        owner = np.zeros(len(shared.reads), np.int64)
        for index in range(num_hosts):
            owner[self.own_instructions(len(owner), Host(index=index, count=num_hosts))] = index
        return shared.by_rows(owner, num_hosts)


def test_a_mode_that_is_added_is_one_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    train = Split(name="train", shard_lengths=(2, 3, 1, 4, 2, 5))
    toy = Dataset(name="toy", splits=(train, Split(name="test", shard_lengths=(9,))))
    monkeypatch.setitem(HOST_MODES, "blocks", Blocks())
    host = Host(index=1, count=3)
    blocks = ReadSettings(host=host, host_by="blocks", cycle=2, block=1)  # type: ignore[arg-type]
    # Host 1 of 3 has the third and the fourth file: ids 5, and 6 to 9.
    order = ReaderOrder(toy, [SplitRange(split=train, start=0, stop=17)], blocks)
    assert order.read(0, order.num_examples).tolist() == [5, 6, 7, 8, 9]
    assert order.positions_of([9, 2])[1].tolist() == [4]
    plan = resume(toy, "train", blocks, consumed=2)
    proof = prove(toy, plan)
    assert (plan.remaining, proof.compared, proof.holds) == (3, 3, True)
    comparison = hosts(toy, "train", hosts=3).comparisons[0]
    assert [strategy.name for strategy in comparison.strategies] == [*HOST_MODES]
    columns = comparison.strategy("blocks").columns
    assert columns is not None
    assert (columns.num_examples.tolist(), columns.num_files.tolist()) == ([5, 5, 7], [2, 2, 2])
    shown = "".join(sweep_table(hosts(toy, "train", hosts=(2, 3)), PLAIN))
    assert shown.split().count("blocks") == 2
    evaluation = evaluate(toy, "train", batch=2, hosts=3, settings=blocks)
    assert evaluation.num_examples.tolist() == [5, 5, 7]
    codes = [finding.rule.code for finding in lint(toy, "train", blocks).findings]
    assert "SC034" in codes  # 5 and 7 examples
