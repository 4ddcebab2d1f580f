"""A snapshot: everything that fixes an order, and the hash tree over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.identity import DatasetHead, DatasetIdentity, SplitSize
from shardctl.core.settings.document import SettingsDocument, settings_of_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.hash_tree import HashTree
from shardctl.core.snapshot.pinned_layout import PinnedSplit
from shardctl.core.snapshot.pinned_source import PinnedSource
from shardctl.core.text import counted, in_short
from shardctl.core.tfds_rules import RuleSet

KIND = "snapshot"
NUM_FIRST_IDS = 32
MAX_SNAPSHOT_BYTES = 100_000
_MAX_FILE_ORDER_CHARS = 15_000


@dataclass(frozen=True, kw_only=True)
class Snapshot:
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
    def name(self) -> str:
        """The dataset's name."""
        return self.head.name

    @property
    def config(self) -> str | None:
        """The dataset's config, None without one."""
        return self.head.config

    @property
    def version(self) -> str | None:
        """The dataset's version, None where it has none."""
        return self.head.version

    @property
    def file_format(self) -> str:
        """The format of the dataset's files."""
        return self.head.file_format

    @property
    def fingerprint(self) -> str:
        """The dataset's fingerprint, of all its splits."""
        return self.head.fingerprint

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
            name=self.name,
            config=self.config,
            version=self.version,
            file_format=self.file_format,
            ordered=self.ordered,
            splits=splits,
        )

    def settings(self) -> ReadSettings | None:
        """Return the settings of the pipeline; None where a list of files in them is hashed.

        Raises:
            UsageError: they hold a setting that this version does not know.
        """
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
    if not names or sum(len(name) + 4 for name in names) <= _MAX_FILE_ORDER_CHARS:
        return pipeline
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    return {**pipeline, "file_order": f"{len(names)} files, sha256:{digest}"}


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of a document, which its own `checksum` takes no part in.

    It is over the values and not over their text, so that a formatter of YAML may pass. `refs` are
    left out as well: whoever moves a layout file may say so.
    """
    values = {key: value for key, value in document.items() if key not in ("checksum", "refs")}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"
