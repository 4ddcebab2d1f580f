"""A command resolves the spec that it is given once, whatever it makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.order import file_formats as order
from shardctl.spec.subsplit import resolve_subsplit
from tests.cli.conftest import Shardctl


@pytest.mark.parametrize(
    "command",
    [
        "simulate",
        "locate --position 3",
        "quality",
        "hosts --hosts 2",
        "snapshot",
        "resume --consumed 3",
        "resume --consumed 1 --hosts 3 --to-hosts 2",
        "resume --seen seen.txt",
    ],
)
def test_a_command_resolves_its_spec_once(
    command: str, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolved: list[str] = []

    def counted(spec: str, dataset: Dataset) -> Any:
        resolved.append(spec)
        return resolve_subsplit(spec, dataset)

    monkeypatch.setattr(order, "resolve_subsplit", counted)
    Path("d.yaml").write_text("splits: {train: {num_examples: 10, num_shards: 3}}\n")
    Path("seen.txt").write_text("d-train.tfrecord-00000-of-00003__1\n")
    ran = shardctl(*command.split(), "train[:9]", "-d", "d.yaml")
    assert ran.exit_code == 0, ran.stderr
    assert resolved == ["train[:9]"]
