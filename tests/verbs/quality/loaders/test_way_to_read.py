"""One way to read: against the whole order, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.file_formats import resolved_spec
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality import loaders as module
from shardctl.verbs.quality.loaders import WayToRead, way_to_read
from shardctl.verbs.quality.ways import ways_to_read
from tests.cases import counted

_TOY = Dataset(
    name="toy", splits=(Split(name="train", shard_lengths=(40, 3, 61, 8, 55, 20, 1, 70)),)
)


def _ways(settings: ReadSettings, spec: str = "train", dataset: Dataset = _TOY) -> list[WayToRead]:
    num_hosts = 1 if settings.host is None else settings.host.count
    resolved = resolved_spec(dataset, spec)
    return [
        way_to_read(resolved, way, num_hosts) for way in ways_to_read(settings, dataset.file_format)
    ]


def _shards_in_batches(way: WayToRead, batch: int) -> list[int]:
    order = plan_order(_TOY, "train", way.settings).order
    codes = order.read(0, order.num_examples)
    shards = np.searchsorted(np.cumsum(_TOY.splits[0].lengths64()), codes, side="right")
    starts = range(0, len(codes) - batch + 1, batch)
    return [len({*shards[start : start + batch].tolist()}) for start in starts]


@pytest.mark.parametrize("host", [None, "1/3"])
def test_shards_of_batches_are_counted_one_by_one(host: str | None) -> None:
    settings = ReadSettings(batch=7, buffer=9, host=host)  # type: ignore[arg-type]
    for way in counted(_ways(settings)):
        if way.mixing is not None:
            found = _shards_in_batches(way, 7)
            assert way.mixing.shards == pytest.approx(sum(found) / len(found))
            assert way.mixing.shards_error is None


def test_files_that_are_read_at_once() -> None:
    found = {way.reader: (way.access, way.num_files) for way in _ways(ReadSettings(buffer=9))}
    assert found == {
        "TFDS: files, shuffle(9)": ("in a row", 8),
        "HF 4.8.5: shuffle(9)": ("in a row", 1),
        "HF 5.2.0: shuffle(9)": ("in a row", 8),
        "HF: Dataset.shuffle": ("by index", 8),
        "Grain: IndexSampler": ("by index", 8),
        # 36 to 44: the end of the file of 40, the file of 3, the first of that of 61.
        "Grain: window shuffle(9)": ("by index", 3),
        "torch: DistributedSampler": ("by index", 8),
        "torch: DataLoader(shuffle)": ("by index", 8),
        "StatefulDataLoader": ("by index", 8),
        "Accelerate": ("by index", 8),
    }


def test_a_cut_shard_is_not_streamed_and_the_reason_is_said() -> None:
    refused = {way.reader: way for way in _ways(ReadSettings(buffer=9), "train[:50%]")}
    for reader in ("HF 4.8.5: shuffle(9)", "HF 5.2.0: shuffle(9)"):
        assert "Hugging Face streams whole shards" in str(refused.pop(reader).refused)
    assert [way.refused for way in refused.values()] == [None] * 8


def test_a_loader_that_shares_nothing_is_no_way_for_hosts() -> None:
    way = next(way for way in _ways(ReadSettings(host="0/2")) if "DataLoader(" in way.reader)  # type: ignore[arg-type]
    assert way.refused is not None
    assert "each of them reads everything" in way.refused
    assert (way.mixing, way.ending, way.num_files) == (None, None, None)


def test_what_a_state_loses_is_at_most_what_the_buffer_and_the_epoch_hold() -> None:
    lost = {way.reader: way.num_lost for way in _ways(ReadSettings(buffer=9)) if way.num_lost}
    assert lost == {"HF 4.8.5: shuffle(9)": 9, "HF 5.2.0: shuffle(9)": 9}
    lost = {way.reader: way.num_lost for way in _ways(ReadSettings()) if way.num_lost}
    assert {*lost.values()} == {258}


def test_a_uniform_permutation_that_is_long_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ReadSettings(batch=8)
    made = {way.reader: way.mixing for way in _ways(settings)}["torch: DistributedSampler"]
    monkeypatch.setattr(module, "COMPLETE_LIMIT", 100)
    known = {way.reader: way.mixing for way in _ways(settings)}["torch: DistributedSampler"]
    assert made is not None
    assert known is not None
    assert (made.num_measured, known.num_measured) == (258, 0)
    assert known.shards == known.at_end == pytest.approx(made.uniform_shards)
    assert (known.score, known.verdict) == (1.0, "as good as uniform")
