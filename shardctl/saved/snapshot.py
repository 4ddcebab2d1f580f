"""A snapshot: layout, settings and hash tree of an order, and how that order is rebuilt from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, groupby, islice
from typing import Any

import numpy as np

from shardctl.base.arrays import spans
from shardctl.base.columns import Answer
from shardctl.base.text import counted, in_short
from shardctl.base.tfds_rules import RuleSet
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.identity import DatasetHead, DatasetIdentity, SplitSize
from shardctl.order.order_tree import HashTree
from shardctl.order.plan_order import PlannedOrder, order_of, order_with_stages
from shardctl.order.resolved_spec import resolved_spec
from shardctl.order.sources import reads_spec
from shardctl.settings.read_settings import ReadSettings, SettingsDocument, settings_of_document
from shardctl.settings.short_form import of_one_reader
from shardctl.settings.table import stages_in
from shardctl.stages.pipelines import readers_of

KIND = "snapshot"
NUM_FIRST_IDS = 32
MAX_SNAPSHOT_BYTES = 100_000
_MAX_FILE_ORDER_CHARS = 15_000


@dataclass(frozen=True, kw_only=True)
class Snapshot(Answer):
    """An order as it was when it was pinned.

    `head` names no folder: the order is the same wherever the files lie. `splits` are those that
    the spec reads; `first_ids` are for people. `pipeline` holds every setting in force; a long list
    of files in it is a hash. `refs` say how the dataset was named where its name does not find it
    again; they fix no order, so snapshots that differ in nothing else are equal. `sources` are the
    datasets of the readers of stages, none where the pipeline has no stages.
    """

    head: DatasetHead
    ordered: bool
    splits: tuple[PinnedSplit, ...]
    spec: str
    pipeline: SettingsDocument
    first_ids: tuple[int | str, ...]
    rules: RuleSet
    tree: HashTree
    refs: tuple[str, ...] = field(default=(), compare=False)
    sources: tuple[PinnedSource, ...] = ()
    assumptions: tuple[str, ...] = field(default=(), compare=False)

    @property
    def num_examples(self) -> int:
        """Number of positions in the order, all epochs of it."""
        return self.tree.num_examples

    @cached_property
    def identity(self) -> DatasetIdentity:
        """The identity of the dataset, as far as the spec reads it."""
        return DatasetIdentity(
            **vars(self.head),
            ordered=self.ordered,
            splits=tuple(
                SplitSize(name=s.name, num_examples=s.num_examples, num_shards=s.num_shards)
                for s in self.splits
            ),
        )

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them: `coco/2017:1.1.0`."""
        return self.head.title

    @cached_property
    def dataset(self) -> Dataset | None:
        """The dataset as it was, as far as the spec reads it; None where the layout is hashed."""
        splits = tuple(pinned.split for pinned in self.splits if pinned.split is not None)
        if len(splits) < len(self.splits):
            return None
        return Dataset(
            name=self.head.name,
            config=self.head.config,
            version=self.head.version,
            file_format=self.head.file_format,
            ordered=self.ordered,
            splits=splits,
        )

    def settings(self) -> ReadSettings | None:
        """Return the settings of the pipeline; None where a list of files in them is hashed.

        Raises:
            UsageError: they hold a setting that this version does not know.
        """
        # A list of files that was too long is kept as the text of its hash.
        if isinstance(self.pipeline.get("file_order"), str):
            return None
        return settings_of_document(self.pipeline, "the snapshot's pipeline")

    def __repr__(self) -> str:
        return in_short(
            self,
            f"{self.title} {self.spec}",
            counted(self.num_examples, "example"),
            self.tree.root.hex()[:12],
        )


def shortened(pipeline: SettingsDocument) -> SettingsDocument:
    """Return the settings with a hash in place of a list of files that is long."""
    names = pipeline.get("file_order")
    # A list of files of a million names would make a snapshot that no review can show.
    if not names or sum(len(name) + 4 for name in names) <= _MAX_FILE_ORDER_CHARS:
        return pipeline
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    return {**pipeline, "file_order": f"{len(names)} files, sha256:{digest}"}


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of a document, which its own `checksum` takes no part in.

    It is over the values and not over their text, so that a formatter of YAML may pass. `refs` are
    left out as well: whoever moves a layout file may correct them.
    """
    values = {key: value for key, value in document.items() if key not in ("checksum", "refs")}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


# The layout of a split in a few kilobytes: as it is where that is short, else as hashes.

MAX_LAYOUT_CHARS = 30_000  # what the lengths and names of all splits may take as text
_MOST_TEXTS = 1 << 15
MAX_CHUNKS = 256  # digests for all the splits that do not fit
EVEN = "even"


@dataclass(frozen=True, kw_only=True)
class ShardHashes:
    """What is kept of too many shards: a digest for every `size` of them, names and lengths."""

    size: int
    digests: tuple[str, ...]

    @classmethod
    def of(cls, split: Split, size: int) -> ShardHashes:
        """Return the digests of a split's shards, `size` at a time."""
        # Little endian, so that the digests are the same on every machine.
        lengths, digests = np.array(split.shard_lengths, "<i8"), []
        for start, stop in spans(0, split.num_shards, size):
            # An order does not depend on names, which a split made in Python may be without.
            names = "\0".join(split.filenames_between(start, stop) if split.files else ())
            data = f"{names}\0\0".encode("utf-8", "surrogatepass") + lengths[start:stop].tobytes()
            digests.append(hashlib.sha256(data).hexdigest()[:24])
        return cls(size=size, digests=tuple(digests))


@dataclass(frozen=True, kw_only=True)
class PinnedSplit:
    """A split as a snapshot keeps it: `split` where the layout is kept as it is, else `hashes`.

    Only base names of files are kept: an order does not depend on folders.
    """

    name: str
    num_examples: int
    num_shards: int
    split: Split | None = None
    hashes: ShardHashes | None = None

    def hashed(self, size: int) -> ShardHashes | None:
        """Return the digests of chunks of `size` shards, None where others are all there is."""
        if self.split is not None:
            return ShardHashes.of(self.split, size)
        return self.hashes if self.hashes is not None and self.hashes.size == size else None


def pinned_layout(dataset: Dataset, names: Iterable[str]) -> tuple[PinnedSplit, ...]:
    """Return the layout of the named splits; those that would make a snapshot long are hashed.

    >>> small = Split(name="test", shard_lengths=(3, 4))
    >>> large = Split(name="train", shard_lengths=tuple(range(40_000)))
    >>> pinned = pinned_layout(Dataset(name="d", splits=(large, small)), ["train", "test"])
    >>> [(p.split is not None, p.hashes and len(p.hashes.digests)) for p in pinned]
    [(False, 157), (True, None)]
    """
    wanted = set(names)
    splits = [_with_base_names(split) for split in dataset.splits if split.name in wanted]
    # First come, first served: a split that still fits into the room is kept as it is.
    room = MAX_LAYOUT_CHARS
    exact = []
    for split in splits:
        size = _text_size(split)
        exact.append(size <= room)
        room -= size if exact[-1] else 0
    # The digests are shared among the splits that are hashed.
    chunks = MAX_CHUNKS // max(1, exact.count(False)) or 1
    pinned = []
    for split, fits in zip(splits, exact, strict=True):
        size = 1 << max(0, -(-split.num_shards // chunks) - 1).bit_length()
        pinned.append(
            PinnedSplit(
                name=split.name,
                num_examples=split.num_examples,
                num_shards=split.num_shards,
                split=split if fits else None,
                hashes=None if fits else ShardHashes.of(split, size),
            )
        )
    return tuple(pinned)


def _text_size(split: Split) -> int:
    """Return about how many characters a layout takes, of a long one how many are too many."""
    parts = ((" " * 15 + part.pattern, *(part.names or ())) for part in split.files)
    return sum(
        len(text) + room
        for texts, room in ((chain.from_iterable(parts), 4), (lengths_in_words(split), 1))
        # Enough to see that it is too long; the rest of a million names is not made.
        for text in islice(texts, _MOST_TEXTS)
    )


def lengths_in_words(split: Split) -> list[str] | Iterator[str]:
    """Return the lengths of a split's shards as text, "even" where they are as TFDS writes them."""
    lengths = split.shard_lengths
    as_tfds = Split.even(
        name=split.name, num_examples=split.num_examples, num_shards=split.num_shards
    )
    is_even = len(lengths) > 1 and lengths == as_tfds.shard_lengths
    return [EVEN] if is_even else run_lengths(lengths)


def run_lengths(lengths: Sequence[int]) -> Iterator[str]:
    """Yield shard lengths as text, a run of the same length as one.

    >>> list(run_lengths([3, 3, 3, 5]))
    ['3x3', '5']
    """
    for length, run in groupby(lengths):
        count = sum(1 for _ in run)
        yield str(length) if count == 1 else f"{length}x{count}"


def _with_base_names(split: Split) -> Split:
    files = tuple(
        replace(
            part,
            data_dir=None,
            pattern=part.pattern.rpartition("/")[2],
            names=part.names and tuple(name.rpartition("/")[2] for name in part.names),
        )
        for part in split.files
    )
    return Split(name=split.name, shard_lengths=split.shard_lengths, files=files)


# What a snapshot keeps of the datasets that the readers of stages name.


@dataclass(frozen=True, kw_only=True)
class PinnedSource:
    """A dataset as readers name it: `data` as in `read(data=..)`, None for that of the command.

    label: what its splits are called by, `label/split`; "" where all readers read one dataset.
    title: its name, config and version.
    """

    data: str | None
    label: str
    title: str
    ordered: bool


def datasets_of(pinned: Dataset, sources: Sequence[PinnedSource]) -> Mapping[str | None, Dataset]:
    """Return the datasets that were pinned as one, by the names that readers have for them.

    >>> from shardctl.dataset.dataset import Split
    >>> both = Dataset(name="a + b", splits=(
    ...     Split(name="a/train", shard_lengths=(4,)), Split(name="b/train", shard_lengths=(5,))))
    >>> found = datasets_of(both, [PinnedSource(data="b", label="b", title="b", ordered=False)])
    >>> found["b"].name, found["b"].splits[0].name, found["b"].splits[0].num_examples
    ('b', 'train', 5)
    """
    # Several references may have led to one dataset: it is made once, by its label.
    by_label = {source.label: _part(pinned, source) for source in sources}
    return {source.data: by_label[source.label] for source in sources}


def _part(pinned: Dataset, source: PinnedSource) -> Dataset:
    if not source.label:
        return replace(pinned, ordered=source.ordered)
    prefix = f"{source.label}/"
    return Dataset(
        name=source.label,
        file_format=pinned.file_format,
        ordered=source.ordered,
        splits=tuple(
            replace(split, name=split.name.removeprefix(prefix))
            for split in pinned.splits
            if split.name.startswith(prefix)
        ),
    )


def pinned_sources(live: PlannedOrder, settings: ReadSettings) -> tuple[PinnedSource, ...]:
    """Return the datasets that the readers of stages name; `live` is the order of the settings."""
    order = live.order
    plain = of_one_reader(settings)
    if plain is not None:
        one, dataset = plain[1], order.dataset
        if one is None:
            return ()
        pinned = PinnedSource(data=one.data, label="", title=dataset.title, ordered=dataset.ordered)
        return (pinned,)
    found: dict[str | None, PinnedSource] = {}
    for read, origin in order.origins.items():
        own = origin.dataset
        several = order.dataset is not own and order.dataset != own
        label = origin.name.rpartition("/")[0] if several else ""
        found.setdefault(
            read.data,
            PinnedSource(data=read.data, label=label, title=own.title, ordered=own.ordered),
        )
    return tuple(found.values())


def spec_as_pinned(pinned: Snapshot, settings: ReadSettings) -> str | None:
    """Return the spec of a snapshot for settings of today; None where stages say what is read."""
    stages = stages_in(pinned.pipeline)
    readers = () if stages is None else readers_of(stages)
    of_command = any((read.spec, read.data) == (None, None) for read in readers)
    is_given = (of_command or not pinned.sources) and reads_spec(settings)
    return pinned.spec if is_given else None


def ref_as_pinned(pinned: Snapshot) -> str:
    """Return the dataset of the command that a snapshot names; of a mixture, a source of it."""
    names = {source.data: source.title for source in pinned.sources}
    # None is the dataset of the command; a mixture without it names one of its sources.
    return names.get(None, next((data for data in names if data is not None), pinned.title))


def order_again(pinned: Snapshot, dataset: Dataset, settings: ReadSettings) -> PlannedOrder:
    """Return the order that a snapshot pins, from what it holds; `dataset` is the pinned one.

    Raises:
        ShardctlError: this version refuses it.
    """
    if settings.stages is None:
        return order_of(resolved_spec(dataset, pinned.spec), settings)
    datasets = datasets_of(dataset, pinned.sources)
    # Datasets as they were pinned, so that no reference is looked up today.
    known = {data: one for data, one in datasets.items() if data is not None}
    spec = pinned.spec if reads_spec(settings) else None
    return order_with_stages(datasets.get(None, dataset), spec, settings, known)
