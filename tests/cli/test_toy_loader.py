"""A loader that is added from one module: every question is answered of it, or refused by name.

It reads all examples back to front, the same in every epoch, each host its part of that row.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.live.library import Library
from shardctl.loaders.loader import LOADERS, Loader, LoaderName, Stop
from shardctl.loaders.loader_sequence import (
    EpochByEpoch,
    EqualBatches,
    LoaderConfig,
    LoaderSequence,
)
from shardctl.metadata.loader_versions import installed_version
from tests.cli.conftest import Shardctl

NAME = cast(LoaderName, "backwards")  # no name that the package knows
BY = ("-d", "toy.yaml", "--loader", NAME)


def sequence(config: LoaderConfig) -> LoaderSequence:
    row = np.arange(config.num_examples)[::-1][config.host :: config.num_hosts]
    size = config.whole_batches(len(row))
    batches = (
        None if config.batch is None else EqualBatches(size, config.batch, epochs=config.epochs)
    )
    return EpochByEpoch([size] * config.epochs, lambda epoch: row[:size], batches=batches)


class Backwards(Library):
    """What a user of it would call."""

    is_one_iterator = True

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        found, size = sequence(config), config.batch or 1
        for epoch in range(config.epochs):
            row = found.indices_at(np.arange(found.epoch_size) + epoch * found.epoch_size)
            for start in range(0, len(row), size):
                yield row[start : start + size]

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterator[str]:
        yield "reversed() goes on by itself"

    def code(self, spec: str, order: Any) -> Iterator[Iterable[str]]:
        yield [f"loader = reversed(examples_of({spec!r}))"]


LOADER = Loader(
    name=NAME,
    title="Backwards",
    library="numpy",
    proven=(installed_version("numpy") or "",),
    takes={
        "epochs": "for epoch in range(N)",
        "host": "row[host::hosts]",
        "batch": "batched",
        "drop_remainder": "strict",
    },
    rule=f"{__name__}:sequence",
    calls=f"{__name__}:Backwards",
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LOADERS, NAME, LOADER)


@pytest.fixture(autouse=True)
def toy(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [4, 0, 6]}}\n")


def row(num_hosts: int = 1, host: int = 0) -> list[int]:
    return [9, 8, 7, 6, 5, 4, 3, 2, 1, 0][host::num_hosts]


def asked(shardctl: Shardctl, command: str, *options: object) -> Any:
    """Return the JSON document of an answer."""
    ran = shardctl(command, *options, "-f", "json", *BY)
    assert (ran.exit_code, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


def test_the_package_does_not_know_its_name() -> None:
    package = Path(inspect.getfile(Loader)).parents[1]
    assert not [path for path in package.rglob("*.py") if f'"{NAME}"' in path.read_text("utf-8")]


def test_its_order_both_ways(shardctl: Shardctl) -> None:
    twice = asked(shardctl, "simulate", "--epochs", 2, "--batch", 4)
    assert twice["ids"] == [*row(), *row()]
    assert asked(shardctl, "simulate", "--host", "1/3")["ids"] == row(3, 1) == [8, 5, 2]
    found = asked(shardctl, "locate", "--id", 3, "--epochs", 2, "--batch", 4)
    places = [(one["position"], one["step"]) for one in found["matches"]]
    assert places == [(6, 1), (16, 4)]  # batches of 4, 4 and 2 an epoch


def test_where_it_goes_on(shardctl: Shardctl) -> None:
    found = asked(shardctl, "resume", "--epochs", 2, "--batch", 4, "--steps", 1)
    assert (found["consumed"], found["remaining"]) == (4, 6)
    left = [(one["skip"], one["take"]) for one in found["file_instructions"]]
    assert left == [(1, 1), (0, 1), (3, 1), (2, 1), (1, 1), (0, 1)]  # 5, 4, then 3 to 0
    assert [call["call"] for call in found["after_read"]] == ["skip"]
    assert "reversed() goes on by itself" in found["advice"]


def test_hosts_and_batches_are_counted(shardctl: Shardctl) -> None:
    found = asked(shardctl, "hosts", "--hosts", 3, "--batch", 2)
    (strategy,) = found["strategies"]
    shares = [(one["num_examples"], one["num_batches"]) for one in strategy["hosts"]]
    assert shares == [(4, 2), (3, 2), (3, 2)]
    assert found["repeated_examples"] == found["left_out_examples"] == 0
    found = asked(shardctl, "eval", "train", "--hosts", 3, "--batch", 2)
    assert [one["remainder"] for one in found["hosts"]] == [0, 1, 1]
    assert not found["hangs"]


def test_how_it_is_shuffled_and_linted(shardctl: Shardctl) -> None:
    assert asked(shardctl, "quality", "--batch", 2)["verdict"] == "no shuffle"
    ran = shardctl("quality", "--loaders", "-d", "toy.yaml", "-f", "json")
    ways = {way["reader"]: way for way in json.loads(ran.stdout)["loaders"]}
    assert ways["Backwards"]["verdict"] == "no shuffle"
    ran = shardctl("lint", "--epochs", 3, "-f", "json", *BY)
    assert "SC001" in [found["code"] for found in json.loads(ran.stdout)["findings"]]


def test_its_order_is_pinned(shardctl: Shardctl) -> None:
    assert shardctl("snapshot", "-o", "order.yaml", *BY).exit_code == 0
    assert shardctl("diff", "order.yaml", *BY).exit_code == 0
    assert shardctl("diff", "order.yaml", "-d", "toy.yaml", "--loader", "tfds").exit_code == 1


def test_its_library_is_run(shardctl: Shardctl) -> None:
    ran = shardctl("verify", "--epochs", 2, "--batch", 4, *BY)
    assert ran.exit_code == 0, ran.stderr


def test_a_project_names_it(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text(f"dataset: toy.yaml\nloader: {NAME}\nread: {{batch: 4}}\n")
    found = json.loads(shardctl("config", "-f", "json").stdout)
    said = {setting["name"]: setting["value"] for setting in found["settings"]}
    assert (said["read.loader"], said["read.batch"]) == (NAME, 4)


@pytest.mark.parametrize(
    "line",
    [
        *("simulate", "simulate -f python", "locate --position 3", "resume --consumed 3"),
        *("resume --consumed 3 -f python", "resume --consumed 3 --prove", "hosts --hosts 3"),
        *("resume --consumed 3 --hosts 3 --to-hosts 2", "hosts --hosts 2-4", "quality --host 0/2"),
        *("eval --batch 2 --hosts 3", "report", "report -f html", "lint --hosts 2", "config"),
    ],
)
def test_every_question_is_answered_or_refused_by_name(line: str, shardctl: Shardctl) -> None:
    ran = shardctl(*line.split(), *BY)
    errors = [text for text in ran.stderr.splitlines() if text.startswith("error: ")]
    assert len(errors) == (ran.exit_code == 2), ran.stderr
    assert ran.exit_code in (0, 1, 2)
    assert "internal error" not in ran.stderr
