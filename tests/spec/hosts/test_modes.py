"""Host modes: what each says of itself, against tf.data and TFDS, and that nobody else says it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import DEFAULT_HOST_MODE, HOST_MODES, Host, HostBy, HostMode
from shardctl.spec.host_reads import HostReads, SharedReads
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.eval.answer import evaluate
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.hosts.view import sweep_table
from shardctl.verbs.lint.answer import lint
from shardctl.verbs.resume.answer import resume
from shardctl.verbs.resume.proof import prove
from tests.cases import add_cases
from tests.tfds_datasets import build_dataset

NUM_HOSTS = (1, 2, 3, 5, 8)


def test_the_words_are_those_of_the_registry() -> None:
    assert get_args(HostBy) == tuple(HOST_MODES)
    assert [mode.word for mode in HOST_MODES.values()] == list(HOST_MODES)
    assert ReadSettings().host_mode is HOST_MODES[DEFAULT_HOST_MODE]


def test_the_manual_lists_the_modes_and_their_calls() -> None:
    guide = Path(shardctl.__file__).parent / "guide" / "orders.md"
    lines = guide.read_text("utf-8").splitlines()
    (row,) = (line.replace("\\|", "|") for line in lines if line.startswith("| `--host I/N`"))
    assert f"`--host-by {'|'.join(HOST_MODES)}`" in row
    for mode in HOST_MODES.values():
        call = "ReadConfig.input_context" if mode.call == "InputContext" else mode.call
        assert f"`{call}`" in row


@pytest.mark.parametrize("mode", HOST_MODES.values(), ids=HOST_MODES)
def test_a_reader_alone_reads_everything(mode: HostMode) -> None:
    train = Split.even(name="train", num_examples=12, num_shards=3)
    whole = [SplitRange(split=train, start=0, stop=12)]
    assert mode.ranges(whole, None) is whole
    assert list(range(7))[mode.own_instructions(7, None)] == list(range(7))
    assert mode.stride_and_phase(None) == (1, 0)


@pytest.mark.parametrize("mode", HOST_MODES.values(), ids=HOST_MODES)
def test_hosts_together_read_everything_once(mode: HostMode) -> None:
    train = Split.even(name="train", num_examples=40, num_shards=9)
    whole = [SplitRange(split=train, start=0, stop=40)]
    for count in NUM_HOSTS:
        read: list[tuple[int, int, int]] = []
        for index in range(count):
            host = Host(index=index, count=count)
            (piece,) = mode.ranges(whole, host)
            files = range(9)[mode.own_instructions(9, host)]
            stride, phase = mode.stride_and_phase(host)
            ids = range(piece.start, piece.stop)[phase::stride]
            read += [(file, id_, 0) for file in files for id_ in ids]
        assert sorted(read) == [(file, id_, 0) for file in range(9) for id_ in range(40)]


# TensorFlow and TFDS


def test_instructions_and_examples_are_those_of_tf_data(tf: Any) -> None:
    for size in (0, 1, 2, 7, 24):
        for count in NUM_HOSTS:
            for index in range(count):
                expected = [*tf.data.Dataset.range(size).shard(count, index).as_numpy_iterator()]
                host = Host(index=index, count=count)
                own = HOST_MODES["files"].own_instructions(size, host)
                assert list(range(size))[own] == expected
                stride, phase = HOST_MODES["examples"].stride_and_phase(host)
                assert list(range(size))[phase::stride] == expected
                add_cases(2)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    folder = build_dataset(tmp_path_factory.mktemp("data"), splits={"train": [2, 0, 3, 1]})
    return tfds.builder_from_directory(folder)


def _read_by(builder: Any, word: str, count: int, index: int) -> Any:
    """Return what TFDS and tf.data make of a host, called by hand."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    if word == "even":
        return builder.as_dataset(split=tfds.even_splits("train", count)[index])
    if word == "files":
        context = tf.distribute.InputContext(num_input_pipelines=count, input_pipeline_id=index)
        return builder.as_dataset(split="train", read_config=tfds.ReadConfig(input_context=context))
    return builder.as_dataset(split="train").shard(count, index)


@pytest.mark.parametrize("word", HOST_MODES)
def test_tf_data_knows_the_length_of_what_a_host_reads(tf: Any, builder: Any, word: str) -> None:
    for count in (1, 2):
        known = int(_read_by(builder, word, count, 0).cardinality()) != tf.data.UNKNOWN_CARDINALITY
        assert known == HOST_MODES[word].knows_length


@pytest.mark.parametrize("word", HOST_MODES)
def test_tfds_refuses_what_the_mode_says(builder: Any, word: str) -> None:
    mode = HOST_MODES[word]  # of three files with six examples
    for count in range(1, 10):
        num_idle = 0 if mode.whole_files else max(0, count - 6)
        refused = mode.refusal(count, num_idle=num_idle, num_files=3)
        try:
            _read_by(builder, word, count, count - 1)
        except ValueError:
            assert refused is not None
        else:
            assert refused is None
        assert mode.refuses_files(3, count) == (mode.whole_files and refused is not None)
        assert mode.refuses_idle or not num_idle or refused is None


# One class is enough


class Blocks(HostMode):
    """A toy mode: each host is given a block of neighbouring files."""

    word = "blocks"
    call = "blocks_of_files"
    whole_files = True

    def own_instructions(self, num_files: int, host: Host | None) -> slice:
        """Return the host's block."""
        if host is None:
            return slice(None)
        start, stop = (num_files * i // host.count for i in (host.index, host.index + 1))
        return slice(start, stop)

    def host_reads(self, shared: SharedReads, num_hosts: int) -> HostReads:
        """Give each block to its host."""
        num_files = len(shared.reads)
        owner = np.zeros(num_files, np.int64)
        for index in range(num_hosts):
            host = Host(index=index, count=num_hosts)
            owner[self.own_instructions(num_files, host)] = index
        return shared.by_rows(owner, num_hosts)


TRAIN = Split(name="train", shard_lengths=(2, 3, 1, 4, 2, 5))
TOY = Dataset(name="toy", splits=(TRAIN, Split(name="test", shard_lengths=(9,))))


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> ReadSettings:
    monkeypatch.setitem(HOST_MODES, "blocks", Blocks())
    return ReadSettings(
        host=Host(index=1, count=3),
        host_by="blocks",  # type: ignore[arg-type]  # the type lists the modes that come with it
        cycle=2,
        block=1,
    )


def test_a_mode_that_is_added_has_orders_and_plans(blocks: ReadSettings) -> None:
    # Host 1 of 3 has the third and the fourth file: ids 5, and 6 to 9.
    order = ReaderOrder(TOY, [SplitRange(split=TRAIN, start=0, stop=17)], blocks)
    assert order.read(0, order.num_examples).tolist() == [5, 6, 7, 8, 9]
    assert order.positions_of([9, 2])[1].tolist() == [4]
    plan = resume(TOY, "train", blocks, consumed=2)
    proof = prove(TOY, plan)
    assert (plan.remaining, proof.compared, proof.holds) == (3, 3, True)


def test_a_mode_that_is_added_is_compared_with_the_others(blocks: ReadSettings) -> None:
    comparison = hosts(TOY, "train", hosts=3).comparisons[0]
    assert [strategy.name for strategy in comparison.strategies] == [*HOST_MODES]
    columns = comparison.strategy("blocks").columns
    assert columns is not None
    assert columns.num_examples.tolist() == [5, 5, 7]
    assert columns.num_files.tolist() == [2, 2, 2]
    heading = "".join(sweep_table(hosts(TOY, "train", hosts=(2, 3)), PLAIN)).splitlines()[1]
    assert heading.split()[-2:] == ["blocks", "idle"]


def test_a_mode_that_is_added_is_evaluated_and_linted(blocks: ReadSettings) -> None:
    evaluation = evaluate(TOY, "train", batch=2, hosts=3, settings=blocks)
    assert evaluation.num_examples.tolist() == [5, 5, 7]
    found = lint(TOY, "train", blocks).findings
    assert "SC034" in [finding.rule.code for finding in found]  # 5 and 7 examples


HOMES = ("spec/host.py", "code/source.py", "tfds/training/pipeline.py")
# Of other loaders the words stand for their own ways to share, which their rules alone know.
OF_LOADERS = (
    "loaders/",
    "loaders/",
    "verbs/lint/rules/loaders.py",
    "verbs/quality/",
)


@pytest.mark.long
def test_nobody_else_asks_for_a_mode_by_its_word() -> None:
    package = Path(shardctl.__file__).parent
    asked = []
    for path in sorted(package.rglob("*.py")):
        where = path.relative_to(package).as_posix()
        if where in HOMES or where.startswith(OF_LOADERS):
            continue
        source = path.read_text()
        if not any(f'"{mode}"' in source for mode in HOST_MODES):
            continue  # without a parse
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            words = {side.value for side in sides if isinstance(side, ast.Constant)}
            # What a verification was read from is "files" too.
            text = ast.unparse(node)
            if words & set(HOST_MODES) and not text.endswith("read == 'files'"):
                asked.append(f"{path.relative_to(package)}:{node.lineno}: {text}")
    assert asked == []
