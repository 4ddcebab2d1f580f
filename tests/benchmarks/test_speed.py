"""What is promised of speed and memory, measured in one run beside what else does the same.

Run with `pytest -o addopts= -s tests/benchmarks`; each test prints its figures, the best of some
rounds taken in turns, so that a busy machine slows both sides. Of processes and of most functions
the processor's time counts, which other work on the machine lengthens little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import shardctl
from shardctl import Dataset, ReadSettings, Split
from shardctl.files.documents import to_json
from shardctl.saved.plan_file import plan_document
from tests.record_files import framed

MILLION = 1_000_000
IMAGENET = tuple(1251 + (shard % 8 == 0) for shard in range(1024))
LARGE = tuple(30 * length for length in IMAGENET)  # 38 million examples
SHUFFLED = "--shuffle-seed 3"
BUFFERED = f"{SHUFFLED} --buffer 10000 --buffer-seed 4"


def best(*runs: Callable[[], object], rounds: int = 3) -> list[float]:
    """Return the least processor seconds of each; they run in turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, of_run in zip(runs, times, strict=True):
            start = time.process_time()
            run()
            of_run.append(time.process_time() - start)
    return [min(of_run) for of_run in times]


_PROCESS = """
import atexit, os, re, sys
def measured():
    peak = re.search("VmHWM:\\\\s+(\\\\d+) kB", open("/proc/self/status").read())[1]
    times = os.times()
    print(times.user + times.system, peak, file=sys.stderr)
atexit.register(measured)
"""


def process(folder: Path, *words: str, code: str = "", rounds: int = 1) -> tuple[float, float]:
    """Return the least processor seconds and the peak in MB of a command, or of other code."""
    code = code or "sys.argv[0] = 'shardctl'\nfrom shardctl.cli.main import main\nmain()"
    seconds, peaks = [], []
    for _ in range(rounds):
        ran = subprocess.run(
            [sys.executable, "-c", _PROCESS + code, *words],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
        )
        used, peak = ran.stderr.split()[-2:]
        seconds.append(float(used))
        peaks.append(int(peak) / 1000)
    return min(seconds), max(peaks)


def layout(folder: Path, num_examples: int, num_shards: int) -> tuple[str, str]:
    """Write a layout, and return the words that ask for it."""
    text = (
        f"name: big\nsplits: {{train: {{num_examples: {num_examples}, num_shards: {num_shards}}}}}"
    )
    (folder / "big.yaml").write_text(text)
    return "-d", "big.yaml"


def order_of(lengths: tuple[int, ...], **settings: Any) -> Any:
    split = Split(name="train", shard_lengths=lengths)
    dataset = Dataset(name="d", splits=(split,))
    return shardctl.plan_order(dataset, "train", ReadSettings(**settings)).order


def ids_of_tensorflow(lengths: tuple[int, ...], count: int, buffer: int | None = None) -> int:
    """Read as many ids from tf.data, with ranges in place of files, in its fastest form."""
    import tensorflow as tf

    counts = np.array(lengths)
    files = tf.data.Dataset.from_tensor_slices((np.cumsum(counts) - counts, counts))
    dataset = files.shuffle(len(counts), seed=1).interleave(
        lambda start, length: tf.data.Dataset.range(start, start + length),
        cycle_length=16,
        block_length=16,
    )
    if buffer is not None:
        dataset = dataset.shuffle(buffer, seed=1)
    return sum(len(ids) for ids in dataset.take(count).batch(1 << 16).as_numpy_iterator())


def ids_of(order: Any, count: int) -> int:
    return sum(map(len, order.chunks(0, count)))


# Start-up, plans and rows.


@pytest.mark.parametrize(
    ("words", "most"), [("plan train[44%:45%]", 2.5), ("layout", 2.5), ("simulate", 5)]
)
def test_start_up_beside_the_imports_of_the_libraries(
    words: str, most: float, tmp_path: Path
) -> None:
    ours, theirs = [], []
    for _ in range(7):
        ours.append(process(tmp_path, *words.split(), "-d", "imagenet2012")[0])
        theirs.append(process(tmp_path, code="import typer, rich.table, yaml")[0])
    ratio = min(ours) / min(theirs)
    print(f"\n{words}: {min(ours):.3f} s, {ratio:.2f} of the imports")
    assert ratio < most


def test_one_percent_of_a_million_shards() -> None:
    dataset = Dataset(
        name="d", splits=(Split.even(name="train", num_examples=10**9, num_shards=MILLION),)
    )
    [ours] = best(lambda: shardctl.plan(dataset, "train[44%:45%]").plans[0].file_instructions[0])
    print(f"\n1% of a million shards: {ours:.4f} s")
    assert ours < 0.1


def test_hosts_of_many_shards_beside_tfds(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds
    from tensorflow_datasets.core import naming, splits

    template = naming.ShardedFileTemplate(
        data_dir="/data", dataset_name="toy", split="train", filetype_suffix="tfrecord"
    )
    info = splits.SplitInfo(
        name="train", shard_lengths=[1000] * 100_000, num_bytes=0, filename_template=template
    )
    own = splits.SplitDict([info])
    part = tfds.even_splits("train", n=64)[0]
    [theirs] = best(lambda: own[part].file_instructions, rounds=1)
    words = ("plan", "--hosts", "64", "-f", "json", "-o", "plan.json")
    ours, _ = process(tmp_path, *words, *layout(tmp_path, 10**8, 100_000), rounds=2)
    plans = json.loads((tmp_path / "plan.json").read_text())["plans"]
    assert sum(plan["num_examples"] for plan in plans) == 10**8
    print(f"\n64 hosts as JSON: {ours:.2f} s; TFDS without JSON {64 * theirs:.0f} s")
    assert ours < 2


_MIDDLE = "5000000000"
_ROWS = {
    "plan": ("table", "json", "yaml", "csv"),
    "layout": ("table", "json", "csv"),
    f"simulate --take {MILLION}": ("table", "csv", "jsonl"),
    "resume --consumed 100": ("csv",),
}
_OF_TEN_MILLION_SHARDS = (
    *(f"simulate --skip {_MIDDLE} {order}" for order in (SHUFFLED, BUFFERED)),
    *(f"simulate --host 3/8 --host-by {by} {SHUFFLED}" for by in ("files", "examples")),
    f"locate --position {_MIDDLE} {SHUFFLED}",
    f"locate --id {_MIDDLE} {SHUFFLED} --epochs 2",
    f"resume --consumed {_MIDDLE} {SHUFFLED} -f json",
    f"resume --consumed {_MIDDLE} {BUFFERED} -f yaml",
    *(
        f"resume --consumed 1000 --hosts 8 --to-hosts 6 --host-by {by} {SHUFFLED}"
        for by in ("even", "files", "examples")
    ),
    "plan -f csv",
    "plan --hosts 64",
)
_RESUMED = [
    f"resume --consumed {consumed} {SHUFFLED} -f {form}"
    for consumed in ("5000", "5000000001", "9999000000")
    for form in ("table", "json", "yaml")
]
_SHUFFLES = (
    *(SHUFFLED, BUFFERED, f"{SHUFFLED} --cycle 1000", f"{SHUFFLED} --epochs 2"),
    *(f"{SHUFFLED} --host 3/8 --host-by examples", "--loaders"),
)
_OVER_MUCH = ("hosts --hosts 8", "hosts --hosts 4,8,16", "report -o a.html")
_LIMITS = {  # examples and shards, seconds and MB
    **{
        f"{a} -f {b} -o rows": (10**9, MILLION, 3, 400) for a, forms in _ROWS.items() for b in forms
    },
    **dict.fromkeys(_OF_TEN_MILLION_SHARDS, (10_000_012_345, 10 * MILLION, 10**9, 1000)),
    **dict.fromkeys(_RESUMED, (10**10, MILLION, 3, 10**9)),
    **{f"quality {shuffle}": (10**10, MILLION, 4, 400) for shuffle in _SHUFFLES},
    **{f"{words} {SHUFFLED}": (10**9, MILLION, 8, 10**9) for words in _OVER_MUCH},
}


@pytest.mark.parametrize("words", _LIMITS)
def test_a_command_over_much(words: str, tmp_path: Path) -> None:
    num_examples, num_shards, seconds, megabytes = _LIMITS[words]
    asked = (*words.split(), *layout(tmp_path, num_examples, num_shards))
    used, peak = process(tmp_path, *asked, rounds=2 if words in _RESUMED else 1)
    print(f"\n{words}: {used:.2f} s, {peak:.0f} MB")
    assert used < seconds
    assert peak < megabytes


def test_lengths_take_no_longer_than_their_numbers(tmp_path: Path) -> None:
    lengths = [900 + index * 7919 % 200 for index in range(MILLION)]
    numbers = ", ".join(map(str, lengths))
    forms = {
        "flow.yaml": f"splits: {{train: {{shard_lengths: [{numbers}]}}}}",
        "lengths.json": json.dumps({"splits": {"train": {"shard_lengths": lengths}}}),
    }
    for name, text in forms.items():
        (tmp_path / name).write_text(text)
    few = f"[{numbers[:200_000].rpartition(',')[0]}]"
    [by_json] = best(lambda: json.loads(f"[{numbers}]"))
    [by_yaml] = best(lambda: yaml.load(few, yaml.CSafeLoader), rounds=1)
    by_yaml *= len(numbers) / len(few)
    for name in forms:
        [ours] = best(lambda name=name: shardctl.read_dataset(tmp_path / name))  # type: ignore[misc]
        print(f"{name}: {ours:.2f} s; json.loads {by_json:.2f} s, CSafeLoader {by_yaml:.1f} s")
        assert ours < (5 * by_json if name.endswith("json") else 1.5 * by_yaml)


def test_a_plan_of_a_million_instructions(tmp_path: Path) -> None:
    layout(tmp_path, 10**9, MILLION)
    plan = shardctl.resume(tmp_path / "big.yaml", "train", consumed=500)
    (tmp_path / "plan").write_text("".join(to_json(plan_document(plan))))
    first = json.dumps([{"filename": "d-0000001", "split": "train", "skip": 0, "take": 10}] * 10**5)
    ours, theirs = best(
        lambda: shardctl.read_plan(tmp_path / "plan"), lambda: json.loads(first), rounds=2
    )
    print(f"\nread_plan {ours:.2f} s, {ours / theirs / 10:.1f} of json.loads of its records")
    assert shardctl.read_plan(tmp_path / "plan") == plan
    assert ours < 40 * theirs


# Orders, look-ups, shuffles.


def test_thirty_million_ids_to_a_file(tmp_path: Path) -> None:
    count, ids = 30 * MILLION, np.arange(30 * MILLION)
    split = Split(name="train", shard_lengths=LARGE)
    dataset = Dataset(name="d", splits=(split,))
    simulation = shardctl.simulate(dataset, "train", {"shuffle_seed": 1}, take=count)
    from shardctl.verbs.simulate.view import array_file

    def save() -> None:
        with open(tmp_path / "order.npy", "wb") as file:
            file.writelines(array_file(simulation))

    ours, saved = best(save, lambda: np.save(tmp_path / "ids.npy", ids))
    start = time.perf_counter()
    ids_of_tensorflow(LARGE, count // 10)
    theirs = 10 * (time.perf_counter() - start)
    print(f"\n30 M ids: {ours:.2f} s, numpy.save {saved:.2f} s, tf.data {theirs:.0f} s")
    assert ours <= 3 * saved + 0.2
    assert theirs / ours >= 100


@pytest.mark.parametrize(
    ("lengths", "count", "buffer"),
    [(IMAGENET, sum(IMAGENET), 10_000), (LARGE, 5 * MILLION, 100_000)],
)
def test_a_shuffle_buffer(lengths: tuple[int, ...], count: int, buffer: int) -> None:
    order = order_of(lengths, shuffle_seed=1, buffer=buffer, buffer_seed=1)
    [ours] = best(lambda: ids_of(order, count), rounds=2)
    start = time.perf_counter()
    ids_of_tensorflow(lengths, count, buffer)
    theirs = time.perf_counter() - start
    print(f"\nbuffer {buffer:,}: {count:,} ids in {ours:.2f} s; tf.data {theirs:.2f} s")
    assert theirs / ours >= 15


@pytest.mark.parametrize("kind", ["imagenet", "a million shards"])
def test_a_million_positions_a_second(kind: str) -> None:
    rng = np.random.default_rng(1)
    lengths = (
        IMAGENET if kind == "imagenet" else tuple(rng.integers(5000, 15_000, MILLION).tolist())
    )
    order = order_of(lengths)
    positions = rng.integers(0, order.num_examples, MILLION)
    codes = order.codes_at(positions)
    there, back = best(lambda: order.codes_at(positions), lambda: order.positions_of(codes))
    print(f"\n{kind}: a million positions {there:.2f} s, a million ids {back:.2f} s")
    assert max(there, back) <= 2


def test_a_few_ids_in_many_epochs() -> None:
    order = order_of(IMAGENET, shuffle_seed=1, epochs=2000)

    def one_by_one() -> None:  # a reading of each epoch, for a tenth of them
        for epoch in range(200):
            order.forget_readings()
            order.reading(epoch).positions(np.array([0]), np.array([5]))

    ours, theirs = best(lambda: list(order.positions_in_pieces([5])), one_by_one)
    print(f"\none id in 2,000 epochs: {ours:.2f} s, with a reading each {10 * theirs:.1f} s")
    assert 10 * theirs / ours >= 3


def test_an_order_is_pinned_in_little_of_what_its_ids_take(tmp_path: Path) -> None:
    read = (*BUFFERED.split(), *layout(tmp_path, 50 * MILLION, 64))
    ids, _ = process(tmp_path, "simulate", "--take", "-1", "-f", "npy", "-o", "ids.npy", *read)
    pinned, peak = process(tmp_path, "snapshot", *read, "-o", "order.yaml")
    print(f"\nids as npy {ids:.2f} s, snapshot {pinned:.2f} s, {peak:.0f} MB")
    assert pinned < 1.6 * ids


# Files and training.


@pytest.mark.parametrize(("size", "count"), [(100, 100_000), (1000, 60_000), (20_000, 6000)])
def test_records_are_counted_and_checked_faster_than_tensorflow_reads_them(
    size: int, count: int, tmp_path: Path
) -> None:
    import tensorflow as tf

    paths = [tmp_path / f"toy-train.tfrecord-{shard:05d}-of-00004" for shard in range(4)]
    for path in paths:
        path.write_bytes(framed(os.urandom(size)) * count)

    def in_batches() -> int:
        batches = tf.data.TFRecordDataset([str(path) for path in paths]).batch(4096)
        return sum(int(n) for n in batches.map(lambda batch: tf.shape(batch)[0]))

    def counted() -> int:
        return shardctl.index(tmp_path, cache=False, jobs=1).dataset.splits[0].num_examples

    dataset = shardctl.index(tmp_path, cache=False).dataset
    assert in_batches() == counted() == 4 * count
    ours, checked, theirs = best(
        counted, lambda: shardctl.verify_files(dataset, jobs=1), in_batches
    )
    print(f"\n{size} B: counted {ours:.3f} s, checked {checked:.3f} s, tf.data {theirs:.3f} s")
    assert ours < theirs / 2
    assert checked < theirs


def test_a_continued_run_starts_and_reads_as_tfds_does(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    from tests.tfds_datasets import build_dataset

    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits={"train": [1000] * 100}))
    settings = ReadSettings(shuffle_seed=3, buffer=20_000, buffer_seed=5, batch=100)
    own = shardctl.tfds.pipeline(builder, "train", settings)
    ours = shardctl.tfds.exact_order(builder, "train", settings, consumed=50_000)
    first, first_ours = best(lambda: next(iter(own)), lambda: next(iter(ours)))
    whole, half = best(lambda: list(own), lambda: list(ours))
    print(f"\nfirst batch {first_ours:.2f} s, TFDS {first:.2f} s; half {half:.2f} of {whole:.2f} s")
    assert first_ours < first + 1
    assert half < whole
