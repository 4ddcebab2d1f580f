"""What a user would stumble over is said, or refused, in words that name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.tensorflow
def test_a_plan_of_an_endless_reading_through_a_buffer_is_proved_and_verified(
    shardctl: Any, tmp_path: Path
) -> None:
    ref = tmp_path / "one.yaml"
    ref.write_text("splits: {train: {shard_lengths: [10]}}")
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
