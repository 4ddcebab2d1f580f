"""Files that a script lists itself: what is refused, and the order beside the real list_files."""

from __future__ import annotations

import ast
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shardctl import plan_order, read_dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.metadata.index.listing import listed_spec
from tests.cases import FUZZ, add_cases, fuzzed, random_of_a_fuzz_run
from tests.golden import assert_answers
from tests.record_files import framed


def write(folder: Path, names: list[str], lengths: list[int]) -> list[str]:
    examples = []
    for name, length in zip(names, lengths, strict=True):
        records = [f"{name}:{at}".encode() for at in range(length)]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(framed(*records))
        examples += [record.decode() for record in records]
    return examples


def test_all_files_are_read_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write(tmp_path, [f"t-{split}-{at}" for split in ("train", "test") for at in "01"], [1] * 4)
    pattern = f"{tmp_path}/t-*"
    assert listed_spec(pattern, read_dataset(pattern)) == "test+train"
    one = f"{tmp_path}/t-test*"
    assert listed_spec(one, read_dataset(one)) == "test"


def test_what_tf_data_would_read_otherwise_is_refused(tmp_path: Path) -> None:
    def answer(question: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        names, lengths, pattern = ast.literal_eval(question)
        write(folder, names, lengths)
        try:
            listed_spec(f"{folder}/{pattern}", read_dataset(f"{folder}/{pattern}"))
        except UsageError as error:
            raise UsageError(str(error).replace(str(folder), "/here")) from None

    assert_answers(Path(__file__).parent / "golden" / "listed.txt", answer)


def test_a_shuffle_without_a_seed_is_refused(tmp_path: Path) -> None:
    write(tmp_path, ["t-0", "t-1"], [1, 1])
    stages = f"list_files('{tmp_path}/t-*') | interleave(cycle_length=2)"
    with pytest.raises(UnpredictableOrderError, match="list_files shuffles the files without a s"):
        plan_order("mnist", settings={"stages": stages})
    assert (
        plan_order("mnist", settings={"stages": stages, "global_seed": 3}).order.num_examples == 2
    )


def test_settings_of_the_command_are_not_those_of_the_script(tmp_path: Path) -> None:
    write(tmp_path, [f"t-{at}" for at in range(5)], [3] * 5)
    stages = f"TFRecordDataset('{tmp_path}/t-*')"
    for own in ({"shuffle_seed": 3}, {"reverse": True}, {"cycle": 4, "block": 2}):
        order = plan_order("mnist", settings={"stages": stages, **own}).order
        assert order.read(0, 15).tolist() == list(range(15))


Step = Callable[[Any], Any]


def _shuffle(size: int, seed: int | None, again: bool) -> Step:
    return lambda ds: ds.shuffle(size, seed, again)


def _behind(rng: random.Random, tf: Any) -> Iterator[tuple[str, Step]]:
    for _ in range(rng.randint(0, 3)):
        kind = rng.choice(["shuffle", "repeat", "skip", "map"])
        if kind == "shuffle":
            size, seed = rng.randint(1, 12), rng.choice([None, rng.randint(0, 9)])
            again = rng.choice([True, False])
            text = f"shuffle({size}, seed={seed}, reshuffle={again})"
            yield text, _shuffle(size, seed, again)
        elif kind == "repeat":
            yield "repeat(2)", lambda ds: ds.repeat(2)
        elif kind == "skip":
            yield "skip(1)", lambda ds: ds.skip(1)
        else:
            yield "map", lambda ds: ds.map(lambda record: tf.strings.join([record, ""]))
    if rng.randrange(2):
        yield "batch(3)", lambda ds: ds.batch(3)


def _listed(rng: random.Random, tf: Any, pattern: str) -> tuple[str, Callable[[], Any]]:
    seed = rng.choice([None, rng.randint(0, 50)])
    shuffle = rng.choice([True, True, False, None])
    cycle, block = rng.randint(1, 6), rng.choice([None, 1, 2, 5])
    calls = rng.choice([None, 1, tf.data.AUTOTUNE])
    if not rng.randrange(5):
        reads = rng.choice([None, 1, 3])
        files = sorted(tf.io.gfile.glob(pattern), key=str.encode)
        text = f"TFRecordDataset('{pattern}', num_parallel_reads={reads})"
        return text, lambda: tf.data.TFRecordDataset(files, num_parallel_reads=reads)
    text = (
        f"list_files('{pattern}', shuffle={shuffle}, seed={seed}) | interleave(TFRecordDataset, "
        f"cycle_length={cycle}, block_length={block}, num_parallel_calls={calls})"
    )

    def made() -> Any:
        listed = tf.data.Dataset.list_files(pattern, shuffle=shuffle, seed=seed)
        return listed.interleave(
            tf.data.TFRecordDataset,
            cycle_length=cycle,
            block_length=block,
            num_parallel_calls=calls,
        )

    return text, made


def _check_one(rng: random.Random, tf: Any, folder: Path) -> None:
    num_files = rng.randint(1, 11)
    names = [f"t-{at:05d}-of-{num_files:05d}.tfrecord" for at in range(num_files)]
    examples = write(folder, names, [rng.randint(1, 6) for _ in names])
    text, made = _listed(rng, tf, f"{folder}/t-*")
    behind = list(_behind(rng, tf))
    global_seed = rng.randint(0, 99)
    tf.random.set_seed(global_seed)
    dataset = made()
    for _, step in behind:
        dataset = step(dataset)
    stages = " | ".join([text, *(said for said, _ in behind)])
    for pass_index in range(3):
        real: list[bytes] = []
        for element in dataset.as_numpy_iterator():
            real += element.tolist() if hasattr(element, "tolist") else [element]
        settings = {"stages": stages, "global_seed": global_seed, "pass_index": pass_index}
        order = plan_order("mnist", settings=settings).order
        found = [examples[code] for code in order.read(0, order.num_examples).tolist()]
        assert found == [record.decode() for record in real], (stages, settings)
        add_cases()


@fuzzed(4, FUZZ // 8)
def test_orders_of_list_files_beside_tensorflow(tmp_path: Path, num_cases: int) -> None:
    import tensorflow as tf

    rng = random_of_a_fuzz_run()
    for case in range(num_cases):
        _check_one(rng, tf, tmp_path / str(case))
