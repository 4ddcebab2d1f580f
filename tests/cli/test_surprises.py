"""What a user would stumble over is said, or refused, in words that name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.oracles import interleave_by_hand

TRAIN = [13, 0, 9, 22, 5, 17]


def _layout(path: Path, **splits: list[int]) -> str:
    described = {name: {"shard_lengths": lengths} for name, lengths in splits.items()}
    path.write_text(yaml.safe_dump({"name": path.stem, "splits": described}, sort_keys=False))
    return str(path)


@pytest.mark.parametrize("buffer", [3, 5000])
def test_a_buffer_on_hosts_of_examples_resumes_with_what_the_plan_lists(
    shardctl: Any, tmp_path: Path, buffer: int
) -> None:
    """The first instructions are this host's alone; of the others it keeps every third example."""
    ref = _layout(tmp_path / "odd.yaml", train=TRAIN)
    options = ["-d", ref, "--cycle", "2", "--block", "2", "--buffer", str(buffer)]
    options += ["--buffer-seed", "0", "--host", "1/3", "--host-by", "examples"]
    order = yaml.safe_load(shardctl("simulate", *options, "--take", "-1", "-f", "yaml").stdout)
    plan = yaml.safe_load(shardctl("resume", *options, "--consumed", "10", "-f", "yaml").stdout)
    offsets = {f"odd-train.tfrecord-{i:05d}-of-00006": sum(TRAIN[:i]) for i in range(6)}
    reads = [
        [offsets[i["filename"]] + i["skip"] + k for k in range(i["take"])]
        for i in plan["file_instructions"]
    ]
    own, shared = (
        reads[: plan["num_pending_instructions"]],
        reads[plan["num_pending_instructions"] :],
    )
    in_turn = [shared[i][k] for i, k in interleave_by_hand([len(r) for r in shared], 2, 2)]
    found = [example for read in own for example in read] + in_turn[1::3]
    assert sorted(found) == sorted(order["ids"][10:])
    calls = [{**call, "skip_instructions": None} for call in plan["after_read"]]
    call = {"call": "shard", "num_shards": 3, "index": 1, "skip_instructions": None}
    assert (call in calls) == bool(shared)


@pytest.mark.tensorflow
def test_a_plan_of_an_endless_reading_through_a_buffer_is_proved_and_verified(
    shardctl: Any, tmp_path: Path
) -> None:
    ref = _layout(tmp_path / "one.yaml", train=[10])
    made = shardctl(
        *("resume", "-d", ref, "--repeat-files", "--buffer", "5", "--buffer-seed", "3"),
        *("--consumed", "2", "--mode", "exact-order", "--prove", "-f", "json"),
    )
    assert made.exit_code == 0
    proof = json.loads(made.stdout)["proof"]
    assert (proof["compared"], proof["lost"], proof["repeated"]) == (8, 0, 0)
    assert proof["moved"] <= 8
    (tmp_path / "plan.json").write_text(made.stdout)
    verified = shardctl("verify", "--plan", tmp_path / "plan.json", "-d", ref)
    assert (verified.exit_code, verified.stderr) == (0, "")
