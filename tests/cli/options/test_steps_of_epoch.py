"""`--epoch E --step S`: a job that stopped, or a batch, by its epoch and its step, both from 0."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Shardctl

NUM, BATCH = 12, 4  # examples of an epoch, which are 3 whole batches


@pytest.fixture(autouse=True)
def toy(shardctl: Shardctl) -> None:
    splits = f"{{train: {{shard_lengths: [5, {NUM - 5}]}}}}"
    Path("toy.yaml").write_text(f"name: toy\nsplits: {splits}\n")


def asked(shardctl: Shardctl, line: str) -> Any:
    """Return the document of an answer, and what was said beside it."""
    ran = shardctl(*line.split(), "-d", "toy.yaml", "--json")
    assert ran.exit_code == 0, ran.stderr
    return json.loads(ran.stdout), ran.stderr


@pytest.mark.parametrize("reader", ["", "--loader grain", "--loader torch --shuffle-seed 3"])
def test_epochs_of_one_iteration_are_counted_in_it(reader: str, shardctl: Shardctl) -> None:
    batches = [range(at, at + BATCH) for at in range(0, 3 * NUM, BATCH)]  # of 3 epochs in a row
    rows = [batches[at : at + NUM // BATCH] for at in range(0, len(batches), NUM // BATCH)]
    how = f"--epochs 3 --batch {BATCH} {reader}"
    for epoch, row in enumerate(rows):
        for step, positions in enumerate(row):
            at = f"--epoch {epoch} --step {step} {how}"
            found, said = asked(shardctl, f"locate {at}")
            assert [one["position"] for one in found["matches"]] == [*positions]
            assert "epochs and steps count from 0\n" in said
            assert asked(shardctl, f"resume {at}")[0]["consumed"] == positions.start
    assert asked(shardctl, f"resume --epoch 1 --step 3 {how}")[0]["consumed"] == 2 * NUM


@pytest.mark.parametrize("loop", ["python", "keras-fit"])
def test_without_epochs_each_iteration_is_one(loop: str, shardctl: Shardctl) -> None:
    how = f"--batch 5 --shuffle-seed 7 --loop {loop}"  # the last batch has 2 examples
    found, said = asked(shardctl, f"locate --epoch 2 --step 2 {how}")
    same, _ = asked(shardctl, f"locate --step 2 --pass-index 2 {how}")
    assert found == same
    assert len(found["matches"]) == 2
    assert "Epoch 2 is --pass-index 2, a new iteration of the dataset" in said
    plan, _ = asked(shardctl, f"resume --epoch 2 --step 1 {how}")
    assert (plan["pipeline"]["pass"], plan["consumed"]) == (2, 5)
