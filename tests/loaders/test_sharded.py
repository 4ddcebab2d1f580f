"""Streaming, litdata and WebDataset, beside recorded orders and the real libraries."""

from __future__ import annotations

import json
from importlib import metadata
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

import shardctl
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.metadata.reference import read_dataset
from tests.cases import counted, seed_of_test
from tests.golden import assert_answers
from tests.loaders.sharded_chains import FILE, MOST, cases, order_of, predicted, real

GOLDEN = Path(__file__).parent / "golden"
LENGTHS = [[5, 9, 2, 14, 7, 11], [4, 8]]


@pytest.mark.parametrize("loader", ["streaming", "litdata", "webdataset"])
def test_orders_are_those_that_were_recorded(loader: str) -> None:
    found = [
        case for case in json.loads(FILE.read_text("utf-8")) if case["settings"]["loader"] == loader
    ]
    assert len({case["version"] for case in found}) >= 2
    for case in counted(found):
        rows = predicted(order_of(case["lengths"], case["settings"], case["version"]))
        assert [*chain(*rows)] == case["ids"], case["settings"]
        assert [*map(len, rows)] == case["sizes"]


@pytest.mark.slow
def test_objects_of_webdataset_are_read_back(tmp_path: Path) -> None:
    wds = pytest.importorskip("webdataset")
    from shardctl.live.sharded import read_webdataset

    for number in range(3):
        with wds.TarWriter(str(tmp_path / f"train-{number}.tar")) as writer:
            for index in range(7):
                writer.write({"__key__": f"{number}{index}", "txt": str(7 * number + index)})
    urls = sorted(map(str, tmp_path.glob("*.tar")))
    dataset = wds.WebDataset(urls, shardshuffle=9, seed=3).shuffle(5, seed=1).to_tuple("txt")
    found: Any = read_webdataset(wds.WebLoader(dataset.slice(2, 19), batch_size=None))
    order = order_of([[7] * 3, [1]], {"loader": "webdataset", "stages": found.stages}, "1.0.2")
    assert [int(text) for (text,) in dataset.slice(2, 19)] == [*chain(*predicted(order))]
    with pytest.raises(UsageError, match="rng"):
        read_webdataset(dataset.shuffle(5, rng=Random(1)))


@pytest.mark.slow
@pytest.mark.parametrize("loader", ["streaming", "litdata", "webdataset"])
def test_random_chains_are_those_of_the_library(loader: str) -> None:
    library = LOADERS[loader].library
    if find_spec(LOADERS[loader].packages[0]) is None:
        pytest.skip(f"{library} is not installed")
    version = metadata.version(library)
    for lengths, settings, order in islice(
        cases(loader, Random(seed_of_test()), version, workers=(None,)), 8
    ):
        found = real(order)  # the first rows of it
        assert predicted(order)[: len(found)] == found, (lengths, settings)
        assert len(found) == MOST or len(predicted(order)) == len(found)


@pytest.mark.parametrize("world", [1, 2, 4])
def test_streaming_continues_on_other_ranks(world: int) -> None:
    def batches(ranks: int, size: int, more: str = "") -> list[list[int]]:
        said = f"shuffle=True, batch_size={size}, shuffle_block_size=20"
        text = f"train | StreamingDataset({said}){more}"
        rows = [
            predicted(order_of(LENGTHS, {"loader": "streaming", "stages": text, **host}, "0.13.0"))
            for host in [{"host": f"{rank}/{ranks}"} if ranks > 1 else {} for rank in range(ranks)]
        ]
        return [sorted(chain(*row)) for row in zip(*rows, strict=True)]

    state = "sample_in_epoch=24, num_canonical_nodes=1, shuffle_seed=9176, initial_physical_nodes=1"
    left = batches(world, 8 // world, f" | load_state_dict(epoch=0, {state})")
    assert left == batches(2, 4)[3:]


def test_index_json_alone_is_a_dataset(tmp_path: Path) -> None:
    def shard(number: int, samples: int) -> dict[str, Any]:
        raw = {"basename": f"shard.{number}.mds", "bytes": 9, "hashes": {}}
        return {"format": "mds", "samples": samples, "raw_data": raw, "zip_data": None}

    for name, lengths in (("train", [3, 4]), ("val", [2])):
        (tmp_path / name).mkdir()
        document = {"version": 2, "shards": [shard(*pair) for pair in enumerate(lengths)]}
        (tmp_path / name / "index.json").write_text(json.dumps(document))
    found = read_dataset([tmp_path])
    assert [(one.name, [*one.shard_lengths]) for one in found.splits] == [
        ("train", [3, 4]),
        ("val", [2]),
    ]
    assert [*found.splits[0].files[0]] == ["train/shard.0.mds", "train/shard.1.mds"]
    chunk = {"chunk_bytes": 8, "chunk_size": 5, "dim": None, "filename": "chunk-0-0.bin"}
    (tmp_path / "index.json").write_text(json.dumps({"chunks": [chunk], "config": {}}))
    found = read_dataset([tmp_path])
    assert (found.file_format, found.splits[0].num_examples) == ("litdata", 5)


def test_what_is_nondeterministic_or_wrong_is_refused_by_name() -> None:
    def answer(question: str) -> str:
        loader, _, stages = question.partition(": ")
        settings = {"loader": loader, **json.loads(stages)}
        rows = predicted(order_of(LENGTHS, settings, LOADERS[loader].proven[-1]))
        return f"{sum(map(len, rows))} examples in {len(rows)} elements"

    assert_answers(GOLDEN / "sharded.txt", answer)


def test_nothing_comes_behind_a_stream_without_end() -> None:
    settings = {"loader": "hf", "streaming": True}
    settings["stages"] = "concatenate_datasets([train | repeat, test])"
    order = order_of([[3], [4]], settings, "5.2.0")
    assert order.indices_at(range(7)).tolist() == [0, 1, 2, 0, 1, 2, 0]


def test_hosts_of_a_mixture_are_checked_as_one() -> None:
    stages = "CombinedStreamingDataset(train | StreamingDataset, test | StreamingDataset)"
    dataset = order_of([[24], [10]], {"loader": "torch"}, "2.14.1").dataset
    found = shardctl.lint(dataset, loader="litdata", stages=stages, host="0/2", batch=3)
    assert "SC034" not in {one.rule.code for one in found.findings}
