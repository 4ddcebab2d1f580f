"""How fast plans are made, beside TFDS in the same run.

Run with `pytest tests/benchmarks/test_plan_speed.py`. The limits asserted are the promised ones;
the ratios printed (`-s`) are the figures to quote.
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

import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.tfds_rules import DEFAULT_TEMPLATE
from shardctl.planning.plan import plan

MILLION = 1_000_000
MANY = 100_000
HOSTS = 64
TFDS_HOSTS = 2  # TFDS takes about a second a host, so two are timed and scaled to 64


def dataset(num_shards: int) -> Dataset:
    files = ShardFiles.from_template(
        DEFAULT_TEMPLATE,
        dataset="toy",
        split="train",
        file_format="tfrecord",
        num_shards=num_shards,
    )
    split = Split.even(
        name="train", num_examples=1000 * num_shards, num_shards=num_shards, files=(files,)
    )
    return Dataset(name="toy", splits=(split,))


def tfds_splits(num_shards: int) -> Any:
    from tensorflow_datasets.core import naming
    from tensorflow_datasets.core import splits as splits_lib

    template = naming.ShardedFileTemplate(
        data_dir="/data", dataset_name="toy", split="train", filetype_suffix="tfrecord"
    )
    info = splits_lib.SplitInfo(
        name="train", shard_lengths=[1000] * num_shards, num_bytes=0, filename_template=template
    )
    return splits_lib.SplitDict([info])


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def process_seconds(*arguments: str, cwd: Path | None = None) -> float:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    return seconds(
        lambda: subprocess.run(
            [sys.executable, *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=cwd,
            env=environment,
        )
    )


@pytest.fixture(scope="module")
def million() -> Dataset:
    return dataset(MILLION)


def one_percent(million: Dataset) -> int:
    return len(plan(million, "train[44%:45%]").plans[0].file_instructions)


@pytest.mark.benchmark(group="1% of a million shards")
def test_one_percent_of_a_million_shards(benchmark: Any, million: Dataset) -> None:
    assert benchmark.pedantic(one_percent, (million,), rounds=10, warmup_rounds=1) == MILLION / 100
    assert benchmark.stats.stats.median < 0.1


@pytest.mark.benchmark(group="1% of a million shards")
def test_one_percent_of_a_million_shards_by_tfds(benchmark: Any) -> None:
    splits = tfds_splits(MILLION)
    found = benchmark.pedantic(lambda: splits["train[44%:45%]"].file_instructions, rounds=1)
    assert len(found) == MILLION / 100


@pytest.mark.benchmark(group="a million shards")
def test_building_a_million_shards(benchmark: Any) -> None:
    assert benchmark.pedantic(dataset, (MILLION,), rounds=3).splits[0].num_shards == MILLION


def test_64_hosts_of_100_000_shards_to_json(tmp_path: Path) -> None:
    # The whole process, from a layout file to JSON.
    layout = {"name": "toy", "splits": {"train": {"num_examples": 10**8, "num_shards": MANY}}}
    (tmp_path / "layout.yaml").write_text(json.dumps(layout))
    arguments = ["-m", "shardctl", "plan", "train", "--hosts", str(HOSTS), "-f", "json"]
    ours = min(
        process_seconds(*arguments, "-d", "layout.yaml", "-o", "plan.json", cwd=tmp_path)
        for _ in range(3)
    )
    plans = json.loads((tmp_path / "plan.json").read_text())["plans"]
    assert sum(entry["num_examples"] for entry in plans) == 10**8
    assert len(plans) == HOSTS

    import tensorflow_datasets as tfds

    splits = tfds_splits(MANY)
    parts = tfds.even_splits("train", n=HOSTS)[:TFDS_HOSTS]
    each = seconds(lambda: [splits[part].file_instructions for part in parts]) / TFDS_HOSTS
    found = [[i.filename, i.skip, i.take] for part in parts for i in splits[part].file_instructions]
    wanted = [
        [f"/data/{i['filename']}", i["skip"], i["take"]]
        for entry in plans[:TFDS_HOSTS]
        for i in entry["file_instructions"]
    ]
    assert found == wanted
    print(
        f"\n{HOSTS} hosts, {MANY} shards: {ours:.2f} s as a process with JSON; "
        f"TFDS, instructions only, {each:.2f} s a host, {each * HOSTS:.0f} s for {HOSTS}"
    )
    assert ours < 2


def test_a_plan_takes_hardly_longer_than_importing_the_libraries() -> None:
    command = ["-m", "shardctl", "plan", "train[44%:45%]", "-d", "imagenet2012"]
    imports = ["-c", "import typer, rich.table, yaml"]
    ours, theirs = [], []
    for _ in range(7):  # in turns, so that a busy machine slows both
        ours.append(process_seconds(*command))
        theirs.append(process_seconds(*imports))
    ratio = min(ours) / min(theirs)
    print(f"\nplan {min(ours):.3f} s, imports {min(theirs):.3f} s: {ratio:.2f} times")
    assert ratio < 2.5
