"""How fast plans are made, beside TFDS in the same run.

Run with `pytest tests/benchmarks/test_plan_speed.py`. The limits asserted are the promised ones;
the ratios printed (`-s`) are the figures to quote.
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.verbs.plan.answer import plan
from tests.benchmarks.tfds_splits import tfds_splits

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


# What reads the peak of a command from the command itself, after its start-up.
PEAK = """
import atexit, os, re, sys
def peak():
    found = re.search("VmHWM:\\\\s+(\\\\d+) kB", open("/proc/self/status").read())
    times = os.times()
    print("peak", found[1], times.user + times.system, file=sys.stderr)
atexit.register(peak)
from shardctl.cli.main import main
main()
"""


@pytest.fixture(scope="module")
def million_shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("million")
    text = "name: toy\nsplits: {train: {num_examples: 1000000000, num_shards: 1000000}}\n"
    (folder / "dataset.yaml").write_text(text)
    return folder


def by_json_dumps(folder: Path) -> str:
    (entry,) = json.loads((folder / "plan.json").read_text())["plans"]
    start = time.process_time()
    json.dumps(entry["file_instructions"])
    return f"json.dumps of its records {time.process_time() - start:.1f} s"


def by_csv_writer(folder: Path) -> str:
    with open(folder / "plan.csv") as file:
        rows = list(csv.reader(file))
    start = time.process_time()
    csv.writer(io.StringIO()).writerows(rows)
    return f"csv.writer of its texts {time.process_time() - start:.1f} s"


def by_pyarrow(folder: Path) -> str:
    from pyarrow import csv as arrow_csv

    table = arrow_csv.read_csv(folder / "layout.csv")
    start = time.process_time()
    arrow_csv.write_csv(table, folder / "arrow.csv")
    return f"pyarrow's writer {time.process_time() - start:.1f} s"


@pytest.mark.parametrize(
    ("command", "ending", "peer"),
    [
        ("plan", "txt", None),
        ("plan", "json", by_json_dumps),
        ("plan", "yaml", None),
        ("plan", "csv", by_csv_writer),
        ("layout", "txt", None),
        ("layout", "json", None),
        ("layout", "yaml", None),
        ("layout", "csv", by_pyarrow),
    ],
)
def test_rows_of_a_million_shards(
    command: str, ending: str, peer: Callable[[Path], str] | None, million_shards: Path
) -> None:
    # The whole process, start-up included, beside writing the same bytes again.
    written = million_shards / f"{command}.{ending}"
    written.unlink(missing_ok=True)
    arguments = [command, "-d", "dataset.yaml", "-o", written.name]
    run = subprocess.run(
        [sys.executable, "-c", PEAK, *arguments],
        cwd=million_shards,
        check=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, peak, used = run.stderr.rsplit("\n", 2)[-2].split()
    data = written.read_bytes()
    start = time.process_time()
    (million_shards / "again").write_bytes(data)
    again = time.process_time() - start
    print(
        f"\n{command} as {ending}: {float(used):.2f} s, {int(peak) / 1000:.0f} MB; its "
        f"{len(data) / 1e6:.0f} MB written again {again:.2f} s"
        + (f"; {peer(million_shards)}" if peer is not None else "")
    )
    assert data.count(b"\n") >= MILLION
    assert float(used) < 3
    assert int(peak) < 250_000


def test_the_first_line_of_a_million_comes_at_once(million_shards: Path) -> None:
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "shardctl", "plan", "-d", "dataset.yaml"],
        cwd=million_shards,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"train in toy\n"
        first = time.perf_counter() - start
        process.kill()
    print(f"\nthe first line of a plan of a million shards: {first:.2f} s")
    assert first < 3
