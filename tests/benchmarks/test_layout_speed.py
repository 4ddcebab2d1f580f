"""How long layouts and plans of a million shards take to read, beside what reads their numbers.

Run with `pytest -o addopts= tests/benchmarks/test_layout_speed.py -s`.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

from shardctl import read_plan
from shardctl.dataset.dataset import Dataset
from shardctl.metadata.layouts import read_layout_file
from shardctl.saved.plan_file import plan_json, plan_yaml
from shardctl.verbs.resume.answer import resume

NUM_SHARDS = 1_000_000
LENGTHS = [900 + index * 7919 % 200 for index in range(NUM_SHARDS)]


def seconds(run: Callable[[], object], rounds: int = 3) -> float:
    """Return the processor seconds of the quickest of several runs, in this process."""
    found = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        found.append(time.process_time() - start)
    return min(found)


def seconds_of_child(command: list[str], **env: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True, env={**os.environ, **env})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def layouts(folder: Path) -> dict[str, Path]:
    """Write the lengths in the ways in which people have them."""
    items = ", ".join(map(str, LENGTHS))
    wrapped = ",\n      ".join(
        ", ".join(map(str, LENGTHS[at : at + 15])) for at in range(0, NUM_SHARDS, 15)
    )
    lead = "splits:\n  train:\n    shard_lengths:"
    block = "".join(f"    - {length}\n" for length in LENGTHS)
    texts = {
        "flow.yaml": f"{lead} [{items}]\n",
        "wrapped.yaml": f"{lead} [\n      {wrapped}\n      ]\n",
        "block.yaml": f"{lead}\n{block}",
        "lengths.json": json.dumps({"splits": {"train": {"shard_lengths": LENGTHS}}}),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return {name: folder / name for name in texts}


def test_lengths_take_no_longer_than_their_numbers(tmp_path: Path) -> None:
    text = ",".join(map(str, LENGTHS)).encode()
    numpy_seconds = seconds(lambda: np.fromstring(text, np.int64, sep=","))
    json_seconds = seconds(lambda: np.array(json.loads(b"[%s]" % text), np.int64))
    few = ",".join(map(str, LENGTHS[:50_000]))
    yaml_seconds = 20 * seconds(lambda: yaml.load(f"[{few}]", yaml.CSafeLoader), 1)
    print(f"\nnumpy.fromstring {numpy_seconds:.3f} s, json.loads {json_seconds:.3f} s, ", end="")
    print(f"yaml.CSafeLoader {yaml_seconds:.1f} s (20 times 50,000 numbers)")
    for name, path in layouts(tmp_path).items():
        found = seconds(lambda path=path: read_layout_file(path))  # type: ignore[misc]
        print(f"{name}: {found:.3f} s, {found / json_seconds:.1f} of json.loads")
        assert list(read_layout_file(path).split("train").shard_lengths) == LENGTHS
        assert found < 5 * json_seconds
        assert found < yaml_seconds / 3


def test_a_tab_skips_lists(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardctl"]
    env = {"COMP_CWORD": "4", "_SHARDCTL_COMPLETE": "complete_bash"}
    few = tmp_path / "few.yaml"
    few.write_text("splits: {train: {shard_lengths: [1, 2]}}")
    paths = {"few.yaml": few, **layouts(tmp_path)}
    found = {
        name: min(
            seconds_of_child(command, COMP_WORDS=f"shardctl plan -d {path} tr", **env)
            for _ in range(3)
        )
        for name, path in paths.items()
    }
    print("\n" + ", ".join(f"TAB {name} {wait:.2f} s" for name, wait in found.items()))
    assert max(found.values()) < found["few.yaml"] + 0.3


@pytest.mark.parametrize("write", [plan_yaml, plan_json])
def test_a_plan_of_a_million_instructions(write: Callable[..., object], tmp_path: Path) -> None:
    layout = tmp_path / "big.yaml"
    layout.write_text("splits: {train: {num_examples: 1000000000, num_shards: 1000000}}")
    plan = resume(read_layout_file(layout), "train", consumed=500)
    path = tmp_path / "plan"
    text = "".join(write(plan))  # type: ignore[arg-type]
    path.write_text(text)
    first = json.dumps([{"filename": "d-0000001", "split": "train", "skip": 0, "take": 10}] * 10**5)
    json_seconds = 10 * seconds(lambda: json.loads(first))
    found = seconds(lambda: read_plan(path), 2)
    print(f"\nread_plan {found:.2f} s, {found / json_seconds:.1f} of json.loads of its records")
    assert read_plan(path) == plan
    assert found < 4 * json_seconds


@pytest.mark.parametrize("kind", ["yaml", "json"])
def test_the_document_of_layout(kind: str, tmp_path: Path) -> None:
    layout, path = tmp_path / "big.yaml", tmp_path / f"document.{kind}"
    layout.write_text("splits: {train: {num_examples: 1000000000, num_shards: 1000000}}")
    command = [sys.executable, "-m", "shardctl", "layout", "-d", str(layout), "-o", str(path)]
    subprocess.run(command, capture_output=True, check=True)
    of_columns = seconds(lambda: read_layout_file(path), 2)
    read: Dataset = read_layout_file(path)
    assert read.fingerprint == read_layout_file(layout).fingerprint
    print(f"\n{path.name} {of_columns:.2f} s, {path.stat().st_size / of_columns / 1e6:.0f} MB/s")
    assert of_columns < 5
