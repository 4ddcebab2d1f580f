"""A snapshot: everything that fixes an order, and the hash tree over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.settings.document import SettingsDocument, settings_from_document
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.snapshot.hash_tree import HashTree
from shardctl.core.snapshot.pinned_layout import PinnedSplit
from shardctl.core.tfds_rules import RuleSet

FORMAT_VERSION = 1
KIND = "snapshot"
NUM_FIRST_IDS = 32
MAX_NUM_BYTES = 100_000
_MAX_FILE_ORDER_CHARS = 15_000


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """An order as it was when it was pinned.

    `splits` are those that the spec reads; `first_ids` are for people. `pipeline` holds every
    setting in force; a long list of files in it is a hash.
    """

    name: str
    config: str | None
    version: str | None
    file_format: str
    fingerprint: str
    ordered: bool
    splits: tuple[PinnedSplit, ...]
    spec: str
    pipeline: SettingsDocument
    first_ids: tuple[int | str, ...]
    rules: RuleSet
    tree: HashTree

    @property
    def num_examples(self) -> int:
        """Number of positions in the order, all epochs of it."""
        return self.tree.num_examples

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them: `coco/2017:1.1.0`."""
        title = self.name if self.config is None else f"{self.name}/{self.config}"
        return title if self.version is None else f"{title}:{self.version}"

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
        return ReadSettings(**settings_from_document(self.pipeline, "the snapshot's pipeline"))


def shortened(pipeline: SettingsDocument) -> SettingsDocument:
    """Return the settings with a hash in place of a list of files that is long."""
    names = pipeline.get("file_order")
    if not names or sum(len(name) + 4 for name in names) <= _MAX_FILE_ORDER_CHARS:
        return pipeline
    digest = hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()
    return {**pipeline, "file_order": f"{len(names)} files, sha256:{digest}"}


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of a document, which its own `checksum` takes no part in.

    It is over the values and not over their text, so that a formatter of YAML may pass.
    """
    values = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"
