"""Hugging Face Datasets as it is installed, run beside the rule of its order."""

from __future__ import annotations

import random
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.cli.main import main
from shardctl.errors import UsageError
from shardctl.loaders.hugging_face import hugging_face_sequence
from shardctl.loaders.hugging_face_eras import BEFORE_SHUFFLE, era_of
from shardctl.loaders.loader import LOADERS, library_of, proven_as
from shardctl.loaders.loader_sequence import LoaderConfig
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.loaders.agreement import check_agreement

_NUM_LIVE = FUZZ * 300 // 2000  # settings of each kind of reading
_KINDS = ("by index", "streamed", "by workers")


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", _KINDS)
def test_orders_are_those_of_the_real_library(kind: str) -> None:
    """The rule is that of the version that is installed, if it is known."""
    pytest.importorskip("datasets", reason="needs Hugging Face Datasets: pip install datasets")
    if kind == "by workers":
        pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
    version = metadata.version("datasets")
    if proven_as(LOADERS["hf"].proven, version) is None:
        pytest.skip(f"datasets {version} is none of the versions that the rule is for")
    chance = random_of_a_fuzz_run()
    for _ in range(_NUM_LIVE if kind != "by workers" else _NUM_LIVE // 10):
        check_live(asked_by_chance(kind, version, chance))


def asked_by_chance(kind: str, version: str, chance: random.Random) -> LoaderConfig:
    """Settings that a process may have."""
    sizes = chance.choice((3, 60))
    least = 0 if chance.random() < 0.2 else 1
    num_shards = chance.choice((1, 2, 3, 7, 12, 25, 40))
    lengths = np.array([chance.randrange(least, sizes) for _ in range(num_shards)], np.int64)
    era, streams = era_of(version), kind != "by index"
    asked: dict[str, Any] = {"streaming": streams, "arrow": chance.random() < 0.5}
    if chance.random() < 0.75:
        asked["seed"] = chance.randrange(10**6)
    if streams and "seed" in asked and chance.random() < 0.9:
        asked["buffer"] = chance.choice((1, 2, 3, 5, 16, 50, 100, 300, 5000))
        if not era.strides_tables and chance.random() < 0.5:
            asked["before_shuffle"] = chance.choice(BEFORE_SHUFFLE)
        if era.interleave != "never" and chance.random() < 0.4:
            asked["input_shards"] = chance.choice((1, 2, 3, 10, 20))
    if chance.random() < 0.5:
        count = chance.choice((1, 2, 3, 4, 5))
        asked.update(shares=True, num_hosts=count, host=chance.randrange(count))
        if streams and era.has_strategy and chance.random() < 0.4:
            asked["host_by"] = chance.choice(("files", "examples"))
    if chance.random() < 0.5:
        asked.update(batch=chance.choice((1, 2, 5, 8, 64)), drop_remainder=chance.random() < 0.5)
    if kind == "by workers":
        asked["workers"] = chance.choice((1, 2, 3))
    return LoaderConfig(
        lengths=lengths[lengths > 0],
        shard_lengths=lengths,
        version=version,
        first_epoch=chance.choice((0, 0, 1, 5)),
        epochs=chance.choice((1, 1, 2)),
        **asked,
    )


def check_live(asked: LoaderConfig) -> None:
    """Check that both hand out the same, or that both refuse."""
    print(asked)
    live = library_of(LOADERS["hf"]).batches(asked, range(asked.num_examples))
    try:
        found = hugging_face_sequence(asked)
    except UsageError:
        with pytest.raises((ValueError, IndexError)):
            list(live)
        add_cases()
        return
    batches = [batch.tolist() for batch in live]
    check_agreement(found, batches, asked.num_examples, batched=asked.batch is not None)
    add_cases()


def test_indices_in_place_of_examples_are_read_both_ways() -> None:
    pytest.importorskip("datasets", reason="needs Hugging Face Datasets: pip install datasets")
    version = metadata.version("datasets")
    lengths = np.array([5, 9, 2])
    stream: dict[str, Any] = {"seed": 2, "buffer": 30}
    kinds: tuple[dict[str, Any], ...] = ({}, {"seed": 2}, stream, {**stream, "arrow": True})
    for settings in kinds:
        check_live(LoaderConfig(lengths=lengths, version=version, **settings))


@pytest.mark.parametrize("kind", ["parquet", "saved", "generated"])
def test_a_layout_of_real_files_is_read_as_the_library_reads_them(
    kind: str, tmp_path: Path
) -> None:
    """Files as `to_parquet` shards, `save_to_disk` and `load_dataset` leave them."""
    datasets = pytest.importorskip(
        "datasets", reason="needs Hugging Face Datasets: pip install datasets"
    )
    datasets.disable_progress_bars()
    whole = datasets.Dataset.from_dict({"index": list(range(100)), "text": ["a", "b"] * 50})
    folder = tmp_path / "made"
    if kind == "parquet":
        (folder / "data").mkdir(parents=True)
        for shard in range(3):
            path = folder / "data" / f"train-{shard:05d}-of-00003.parquet"
            whole.shard(3, shard, contiguous=True).to_parquet(path, batch_size=7)
        files, builder = sorted(folder.rglob("*.parquet")), "parquet"
    elif kind == "saved":
        whole.save_to_disk(folder, num_shards=3)
        files, builder = sorted(folder.rglob("*.arrow")), "arrow"
    else:
        whole.save_to_disk(tmp_path / "first", num_shards=3)
        given = sorted(map(str, (tmp_path / "first").glob("*.arrow")))
        cached = datasets.load_dataset("arrow", data_files=given, split="train", cache_dir=folder)
        cached.map(lambda row: {"other": row["index"]})  # leaves a file of its own there
        files, builder = sorted(folder.rglob("arrow-train*.arrow")), "arrow"
    layout = tmp_path / "layout.yaml"
    with pytest.raises(SystemExit) as ended:
        main(["index", str(folder), "-o", str(layout)])
    assert ended.value.code == 0
    for settings in ({"shuffle_seed": 4}, {"shuffle_seed": 4, "buffer": 30}, {"streaming": True}):
        given = [str(file) for file in files]
        streams = settings != {"shuffle_seed": 4}
        real = datasets.load_dataset(
            builder, data_files=given, split="train", streaming=streams, cache_dir=tmp_path / "c"
        )
        if "buffer" in settings:
            real = real.shuffle(seed=4, buffer_size=30)
        elif "shuffle_seed" in settings:
            real = real.shuffle(seed=4)
        order = shardctl.plan_order(str(layout), "train", {"loader": "hf", **settings}).order
        codes = order.codes_at(np.arange(order.num_examples)).tolist()
        assert codes == [row["index"] for row in real]


@pytest.mark.long
@pytest.mark.parametrize(
    "settings",
    [
        {"before_shuffle": "map"},
        {"before_shuffle": "cast_column"},
        {"arrow": False, "workers": 2, "batch": 3},
    ],
    ids=str,
)
def test_the_stated_pipeline_is_what_runs_over_real_files(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a generator in workers too, each of which reads its files and no part of them."""
    datasets = pytest.importorskip(
        "datasets", reason="needs Hugging Face Datasets: pip install datasets"
    )
    if "workers" in settings:
        pytest.importorskip("torch", reason="needs PyTorch: pip install torch")
    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    whole = datasets.Dataset.from_dict({"index": list(range(100)), "text": ["a", "b"] * 50})
    files = [str(tmp_path / f"{shard}.parquet") for shard in range(5)]
    for shard, file in enumerate(files):  # of 20 examples each
        whole.shard(5, shard, contiguous=True).to_parquet(file, batch_size=7)
    asked = LoaderConfig(
        lengths=np.full(5, 20),
        version=metadata.version("datasets"),
        file_format="parquet",
        seed=4,
        buffer=30,
        **settings,
    )
    rows = library_of(LOADERS["hf"]).rows(asked, files, "parquet")
    found = hugging_face_sequence(asked)
    expected = found.indices_at(np.arange(found.num_examples)).tolist()
    assert [row["index"] for batch in rows for row in batch] == expected
