"""Pairs of orders that are alike or nearly so, and what a count of every position says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import ShardctlError
from shardctl.files.parse import parse_yaml
from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import snapshot_from_document, snapshot_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.snapshot.answer import TakenSnapshot, snapshot
from tests.order.order_cases import changed, read_settings
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import shard_lengths

SPECS = ("train", "train", "train", "test", "train+test", "test+train", "all", "train[:50%]")
Example = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Pipeline:
    """What an order is made of."""

    lengths: tuple[tuple[str, tuple[int, ...]], ...]
    spec: str
    settings: ReadSettings

    @property
    def dataset(self) -> Dataset:
        """A dataset with these splits."""
        return dataset_of(dict(self.lengths))

    def taken(self) -> TakenSnapshot | None:
        """Return its snapshot, None where the order is not one that can be predicted."""
        try:
            return snapshot(self.dataset, self.spec, self.settings)
        except ShardctlError:
            return None


def dataset_of(splits: dict[str, tuple[int, ...]]) -> Dataset:
    """Return a dataset of TFDS's file names with these shard lengths."""
    return toy_dataset(splits, data_dir=None, version="1.0.0")


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Pipeline, Pipeline]:
    """A pipeline and the same one, one setting or one shard away, or another altogether."""
    one = draw(_pipelines())
    kind = draw(st.sampled_from(["same", "other", "setting", "spec", "length", "shard", "splits"]))
    if kind == "other":
        return one, draw(_pipelines())
    if kind == "setting":
        values = {"block": (1, 4, 15, 16), "cycle": (1, 2, 15, 16), "epochs": (1, 2, 3)}
        name = draw(st.sampled_from(sorted(values)))
        settings = changed(one.settings, **{name: draw(st.sampled_from(values[name]))})
        return one, replace(one, settings=settings)
    if kind == "spec":
        return one, replace(one, spec=draw(st.sampled_from(SPECS)))
    if kind == "splits":
        return one, replace(one, lengths=one.lengths[::-1])
    lengths = {name: list(shards) for name, shards in one.lengths}
    shards = lengths[draw(st.sampled_from(sorted(lengths)))]
    at = draw(st.integers(0, max(len(shards) - 1, 0)))
    if kind == "length" and shards:
        shards[at] += draw(st.integers(0, 3))
    elif kind == "shard":
        shards[at : at + draw(st.integers(0, 1))] = draw(st.sampled_from([[], [0], [9]]))
    after = tuple((name, tuple(found)) for name, found in lengths.items())
    return one, replace(one, lengths=after)


@st.composite
def _pipelines(draw: st.DrawFn) -> Pipeline:
    scale = draw(st.sampled_from([1, 1, 700]))  # 700: orders of several blocks
    lengths = tuple(
        (name, tuple(length * scale for length in draw(shard_lengths())))
        for name in ("train", "test")
    )
    num_examples = sum(sum(found) for _, found in lengths)
    return Pipeline(
        lengths=lengths,
        spec=draw(st.sampled_from(SPECS)),
        settings=draw(read_settings(max(num_examples, 1), ("even", "files", "examples"))),
    )


def examples(pipeline: Pipeline, taken: TakenSnapshot) -> list[Example]:
    """Return (split, id) at every position."""
    order = taken.live.order
    ids = order.codes.ids(order.read(0, order.num_examples))
    if ids and isinstance(ids[0], str):
        named = [str(name).rpartition(":") for name in ids]
        return [(split, int(number)) for split, _, number in named]
    split = pipeline.spec.partition("[")[0]
    return [(split, int(number)) for number in ids]


def through_a_file(taken: Snapshot) -> Snapshot:
    """Return the snapshot that its YAML says."""
    text = "".join(snapshot_yaml(taken)).encode()
    document = parse_yaml(text, source="order.yaml")
    assert isinstance(document, dict)
    return snapshot_from_document(document)


def differing_positions(one: list[Example], other: list[Example]) -> list[int]:
    """Return every position at which two lists do not hold the same, past an end too."""
    return [
        position
        for position in range(max(len(one), len(other)))
        if one[position : position + 1] != other[position : position + 1]
    ]
