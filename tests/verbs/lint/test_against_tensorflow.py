"""What the rules say of shuffles, seeds and the interleave is what tf.data does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.answer import lint
from shardctl.verbs.lint.context import Usage
from tests.cases import check_cases
from tests.order.order_cases import Case, changed, elements, seeds, tensorflow_dataset

MODULUS = 2**31 - 1


def pipeline(lengths: tuple[int, ...], **settings: Any) -> Case:
    return Case(lengths=lengths, slices=((0, sum(lengths)),), settings=ReadSettings(**settings))


def read(tf: Any, case: Case) -> list[int]:
    found: list[int] = elements(tensorflow_dataset(tf, case).batch(10_000))
    return found


def found(case: Case, code: str, usage: Usage | None = None) -> list[str]:
    """Return why a rule finds something in a case."""
    split = Split(name="train", shard_lengths=case.lengths)
    report = lint(Dataset(name="d", splits=(split,)), ["train"], case.settings, usage=usage)
    return [finding.why for finding in report.findings if finding.rule.code == code]


flags: st.SearchStrategy[bool | None] = st.sampled_from([None, True, False])


@st.composite
def shuffled(draw: st.DrawFn, num_files: st.SearchStrategy[int], epochs: int = 4) -> Case:
    """Pipelines of a few files, some shuffled by files, some by a buffer."""
    lengths = tuple(draw(st.lists(st.integers(3, 8), min_size=1, max_size=1)) * draw(num_files))
    settings: dict[str, Any] = {
        "cycle": draw(st.integers(1, 4)),
        "block": draw(st.integers(1, 9)),
        "epochs": epochs,
    }
    if draw(st.booleans()):
        settings |= {"shuffle_seed": draw(seeds), "reshuffle": draw(flags)}
    if draw(st.booleans()):
        settings |= {"buffer": draw(st.sampled_from([1, 7, 99])), "buffer_seed": draw(seeds)}
        settings["buffer_reshuffle"] = draw(flags)
    return pipeline(lengths, **settings)


def test_epochs_are_one_order_just_where_the_rule_says_so(tf: Any) -> None:
    def check(case: Case) -> None:
        order, size = read(tf, case), sum(case.lengths)
        epochs = [order[i : i + size] for i in range(0, len(order), size)]
        assert len(epochs) == 4
        assert bool(found(case, "SC001")) == all(epoch == epochs[0] for epoch in epochs), case

    # Two files would come in one order by chance, and as few examples as three as well.
    check_cases(shuffled(st.sampled_from([1, 6, 9])), check, 12)


def test_shuffling_one_file_or_by_a_buffer_of_one_changes_nothing(tf: Any) -> None:
    for seed in range(4):
        one_file = pipeline((30,), shuffle_seed=seed)
        small = pipeline((5, 5, 5), buffer=1, buffer_seed=seed)
        assert found(one_file, "SC004")
        assert read(tf, one_file) == list(range(30))
        assert found(small, "SC005")
        assert read(tf, small) == read(tf, pipeline((5, 5, 5)))


def test_a_small_buffer_hands_out_what_the_open_files_hold(tf: Any) -> None:
    lengths, cycle = (40,) * 12, 4
    small = pipeline(lengths, cycle=cycle, buffer=15, buffer_seed=3)
    assert found(small, "SC002") == [
        "train: the buffer holds 15 of the 160 examples in the 4 files read at a time"
    ]
    order = read(tf, small)
    for start in range(0, 480, 160):  # files of the next cycle come a buffer early at most
        assert max(order[: start + 145]) < start + 160
    large = pipeline(lengths, cycle=cycle, buffer=160, buffer_seed=3)
    assert not found(large, "SC002")
    assert max(read(tf, large)[:145]) >= 160


def test_under_a_file_shuffle_alone_blocks_and_files_keep_their_order(tf: Any) -> None:
    case = pipeline((8,) * 10, cycle=3, block=4, shuffle_seed=5, epochs=4)
    assert found(case, "SC003")
    order = read(tf, case)
    for start in range(0, len(order), 80):
        epoch = order[start : start + 80]
        for first in range(0, 80, 4):
            place = epoch.index(first)
            assert epoch[place : place + 4] == list(range(first, first + 4))
            if first % 8:
                assert epoch.index(first - 4) < place


def test_the_global_seed_changes_an_order_that_has_a_seed(tf: Any) -> None:
    def check(pair: tuple[int, int]) -> None:
        seed, other = pair
        for own in ({"shuffle_seed": seed}, {"buffer": 99, "buffer_seed": seed}):
            alone, beside = (
                pipeline((1,) * 60, **own),
                pipeline((1,) * 60, **own, global_seed=other),
            )
            assert found(beside, "SC011")
            assert not found(alone, "SC011")
            assert read(tf, alone) != read(tf, beside)

    # 87654321 is the global seed where there is none.
    others = seeds.filter(lambda other: other % MODULUS != 87654321)
    check_cases(st.tuples(seeds, others), check, 6)


def test_seeds_are_one_just_where_the_rule_says_so(tf: Any) -> None:
    def check(case: tuple[int, int, int | None]) -> None:
        seed, other, global_seed = case
        orders = [
            read(tf, pipeline((1,) * 60, shuffle_seed=each, global_seed=global_seed))
            for each in (seed, other)
        ]
        bare = pipeline((9,), global_seed=global_seed)
        assert bool(found(bare, "SC012", Usage(seeds=(seed, other)))) == (orders[0] == orders[1])

    apart = st.integers(-3, 3).map(lambda k: k * MODULUS) | st.integers(-2, 2)
    pairs = st.tuples(seeds, apart, st.none() | seeds)
    cases = pairs.map(lambda case: (case[0], case[0] + case[1], case[2]))
    check_cases(cases, check, 8)


def test_a_drawn_seed_depends_on_what_was_built_before(tf: Any) -> None:
    case = pipeline((1,) * 60, buffer=99, global_seed=7)
    assert found(case, "SC013")
    first = read(tf, case)
    tf.random.set_seed(7)
    tf.random.uniform(())
    dataset = tf.data.Dataset.range(60).shuffle(99)
    assert first == read(tf, case) != elements(dataset)


def test_a_buffer_of_the_whole_hands_out_nothing_before_its_input_ends(tf: Any) -> None:
    assert found(pipeline((3,), repeat_files=True, buffer=-2, buffer_seed=1), "SC009")
    num_read = 0

    def endless() -> Iterator[int]:
        nonlocal num_read
        while num_read < 5000:
            num_read += 1
            yield num_read
        raise RuntimeError("read on and on")

    dataset = tf.data.Dataset.from_generator(endless, output_signature=tf.TensorSpec((), tf.int64))
    with pytest.raises(tf.errors.OpError, match="read on and on"):
        next(iter(dataset.shuffle(-2, seed=1)))
    assert num_read == 5000


def test_keras_reads_every_second_order(tf: Any) -> None:
    import keras

    case = pipeline((1,) * 60, shuffle_seed=5, loop="keras-fit")
    assert found(case, "SC014")
    ready = tensorflow_dataset(tf, changed_loop(case))
    python = [elements(ready) for _ in range(5)]
    epochs: list[list[int]] = []

    class Recorder(keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> dict[str, Any]:
            epochs[-1].append(int(data))
            return {"loss": 0.0}

    class Epochs(keras.callbacks.Callback):  # type: ignore[misc]
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            epochs.append([])

    model = Recorder()
    model.compile(run_eagerly=True)
    model.fit(
        tensorflow_dataset(tf, changed_loop(case)),
        epochs=3,
        shuffle=False,
        verbose=0,
        callbacks=[Epochs()],
    )
    assert epochs == [python[0], python[2], python[4]]
    assert epochs[1] != python[1]


def changed_loop(case: Case) -> Case:
    settings = changed(case.settings, loop="python")
    return Case(lengths=case.lengths, slices=case.slices, settings=settings)


def test_cycle_none_is_a_third_of_the_processors(tf: Any) -> None:
    cpus = len(os.sched_getaffinity(0))
    case = pipeline((7,) * 40, cycle="auto", cpus=cpus, block=2)
    assert found(case, "SC021")

    def interleaved(cycle: int | None) -> list[int]:
        files = tf.data.Dataset.range(40).interleave(
            lambda shard: tf.data.Dataset.range(shard * 7, shard * 7 + 7),
            cycle_length=cycle,
            block_length=2,
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return elements(files)

    assert interleaved(None) == interleaved(-(-cpus // 3)) == read(tf, case)
    assert interleaved(None) != interleaved(-(-cpus // 3) + 1)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts files in /proc")
@pytest.mark.parametrize("cycle", [2, 4])
def test_the_interleave_holds_three_cycles_of_files_open(
    tf: Any, tmp_path: Path, cycle: int
) -> None:
    paths = [str(tmp_path / f"{index:02}") for index in range(24)]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(2000):
                writer.write(b"x" * 200)
    dataset = tf.data.Dataset.from_tensor_slices(paths).interleave(
        tf.data.TFRecordDataset,
        cycle_length=cycle,
        block_length=16,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    most = 0
    for number, _ in enumerate(dataset.take(9000)):
        if number % 100 == 0:
            most = max(most, num_open(tmp_path))
    assert cycle < most <= 3 * cycle
    case = pipeline((2000,) * 24, cycle=cycle)
    assert not found(case, "SC024", Usage(max_open_files=3 * cycle + 16))
    assert found(case, "SC024", Usage(max_open_files=3 * cycle + 15))


def num_open(folder: Path) -> int:
    count = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            count += str(entry.readlink()).startswith(str(folder))
        except OSError:  # closed meanwhile
            continue
    return count


def test_example_sharding_reads_everything_and_misses_some_without_a_seed(tf: Any) -> None:
    num_read = 0

    def counted(example: Any) -> Any:
        nonlocal num_read
        num_read += 1
        return example

    dataset = tf.data.Dataset.range(100).map(lambda x: tf.py_function(counted, [x], tf.int64))
    assert len(elements(dataset.shard(10, 3))) == 10
    assert num_read == 100
    case = pipeline((1,) * 100, shuffle_files=True, host_by="examples")
    assert found(case, "SC036", Usage(hosts=4))
    shuffled = tf.data.Dataset.range(100).shuffle(100)  # of another seed on each host
    hosts = [shuffled.shard(4, index) for index in range(4)]
    assert len({example for host in hosts for example in elements(host)}) < 100
    seeded = pipeline((1,) * 100, shuffle_seed=1, host_by="examples")
    assert not found(seeded, "SC036", Usage(hosts=4))
    hosts = [tensorflow_dataset(tf, seeded).shard(4, index) for index in range(4)]
    assert sorted(example for host in hosts for example in elements(host)) == list(range(100))
