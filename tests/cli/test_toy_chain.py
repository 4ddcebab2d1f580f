"""A loader whose calls are stages: one module has their classes, and its rule reads the chain."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, Loader, LoaderName, calls_of
from shardctl.loaders.loader_sequence import Followed, LoaderConfig, LoaderSequence, pieces_of
from shardctl.stages import part as parts
from shardctl.stages.stages import Mixture, Pipeline, Read
from tests.cli.conftest import Shardctl

NAME = cast(LoaderName, "rows")


class Reverse(parts.Stage):
    """All elements, last to first."""

    name = "reverse"


class Pack(parts.Stage):
    """Elements of `size` examples each."""

    name = "pack"
    size: parts.PositiveCount


class Again(parts.Stage):
    """All of it without end."""

    name = "again"


class Both(Mixture):
    """One input behind the other."""

    name = "both"


def row(pipeline: Pipeline, config: LoaderConfig) -> Int64s:
    source = pipeline.source
    if isinstance(source, Read):
        found = np.array(config.sources[source].indices)
    else:
        found = np.concatenate([row(one, config) for one in source.fed_by])
    for stage in pipeline.stages:
        found = found[::-1] if isinstance(stage, Reverse) else found
    return found


def sequence(config: LoaderConfig) -> LoaderSequence:
    stages = config.stages
    if stages is None:
        raise UsageError("rows are read with --stages only")
    size = next((one.size for one in stages.stages if isinstance(one, Pack)), 1)
    is_endless = any(isinstance(one, Again) for one in stages.stages)
    found = row(stages, config)

    elements = [found[start : start + size].tolist() for start in range(0, len(found), size)]
    epochs = (iter(elements) for _ in (count() if is_endless else range(1)))
    return Followed(
        pieces_of(epochs), batches=size > 1, epoch_size=len(found), is_endless=is_endless
    )


LOADER = Loader(
    name=NAME,
    title="Rows",
    library="numpy",
    proven=(np.__version__,),
    takes=("stages", "batch"),
    in_stages=("batch",),
    rule=f"{__name__}:sequence",
    calls="tests.cli.test_toy_loader:Backwards",
    stages=__name__,
)


@pytest.fixture(autouse=True)
def toy(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(LOADERS, NAME, LOADER)
    splits = "{train: {shard_lengths: [3, 2]}, test: {shard_lengths: [2]}}"
    Path("toy.yaml").write_text(f"name: toy\nsplits: {splits}\n")
    yield
    calls_of.cache_clear()


def asked(shardctl: Shardctl, stages: str, *words: str) -> Any:
    ran = shardctl(*words, "-d", "toy.yaml", "--loader", NAME, "--stages", stages, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


def test_a_chain_decides_the_order(shardctl: Shardctl) -> None:
    assert asked(shardctl, "reverse", "simulate")["ids"] == [4, 3, 2, 1, 0]
    several = ["train:2", "train:1", "train:0", "test:1", "test:0"]
    assert asked(shardctl, "reverse", "simulate", "test+train[:3]")["ids"] == several
    found = asked(shardctl, "pack(2)", "locate", "--step", "1")
    assert [one["id"] for one in found["matches"]] == [2, 3]


def test_several_readers_are_told_apart(shardctl: Shardctl) -> None:
    mixed = "both(train | reverse, test)"
    ids = [f"train:{n}" for n in (4, 3, 2, 1, 0)] + ["test:0", "test:1"]
    assert asked(shardctl, mixed, "simulate")["ids"] == ids
    (found,) = asked(shardctl, mixed, "locate", "--id", "test:1")["matches"]
    assert found["position"] == 6


def test_an_endless_chain_is_followed(shardctl: Shardctl) -> None:
    found = asked(shardctl, "again", "simulate", "--take", "12")
    assert found["ids"] == [0, 1, 2, 3, 4] * 2 + [0, 1]


def test_what_stages_say_has_no_place_beside_them(shardctl: Shardctl) -> None:
    ran = shardctl(
        "simulate", "--batch", "2", "--stages", "reverse", "--loader", NAME, "-d", "toy.yaml"
    )
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: --stages says all that is behind the reader, so --batch")
    ran = shardctl("simulate", "--stages", "shuffle(9)", "--loader", NAME, "-d", "toy.yaml")
    assert "no stage 'shuffle'; stages: reverse, pack" in ran.stderr


def test_a_chain_is_pinned_and_kept_in_a_project(shardctl: Shardctl) -> None:
    Path("shardctl.yaml").write_text(
        f"dataset: toy.yaml\nread:\n  loader: {NAME}\n  stages: [reverse, pack: 2]\n"
    )
    assert json.loads(shardctl("simulate", "-f", "json").stdout)["ids"] == [4, 3, 2, 1, 0]
    assert shardctl("snapshot", "-o", "order.yaml").exit_code == 0
    assert shardctl("diff", "order.yaml").exit_code == 0
