"""The metadata of TFDS and of Hugging Face Datasets beside the files, which have one name.

Source: datasets 5.2, info.py, naming.py and arrow_dataset.py (`save_to_disk`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set

from shardctl.core.dataset.dataset import Dataset, Split, shard_named
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.files import fields
from shardctl.readers.records.sidecars.expected import ExpectedCount
from shardctl.readers.tfds_metadata import dataset_from_info

# datasets/naming.py, camelcase_to_snakecase.
_TWO_CAPITALS, _ONE_CAPITAL = re.compile("([A-Z]+)([A-Z][a-z])"), re.compile(r"([a-z\d])([A-Z])")
_HUGGING_FACE_ENDINGS = ("arrow", "parquet")


class TfdsInfo:
    """What TFDS's metadata say of the files beside them."""

    def __init__(self, document: object, *, folder: str) -> None:
        """Read a parsed dataset_info.json.

        Raises:
            DatasetError: a field that is needed is missing or of the wrong kind.
        """
        self._dataset: Dataset = dataset_from_info(document, data_dir=folder)
        self._folder = folder
        self._by_name: dict[str, tuple[Split, int]] = {}

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        found = self._shard(path[len(self._folder) :])
        if found is None:
            return None
        split, shard = found
        return ExpectedCount(num_examples=split.shard_lengths[shard], said_by=DATASET_INFO_FILENAME)

    def absent(self, listed: Set[str]) -> list[str]:
        """Return nothing: gaps show in the names, and a split that is not here is none."""
        return []

    def _shard(self, name: str) -> tuple[Split, int] | None:
        for split in self._dataset.splits:
            try:
                shard = shard_named(split, name)
            except ValueError:  # a template that leaves no number out
                return self._named().get(name)
            if shard is not None:
                return split, shard
        return None

    def _named(self) -> dict[str, tuple[Split, int]]:
        if not self._by_name:
            for split in self._dataset.splits:
                for shard in range(split.num_shards):
                    self._by_name[split.location(shard)[1]] = split, shard
        return self._by_name


class HuggingFaceInfo:
    """What the metadata in a cache folder of Hugging Face Datasets say of the files there.

    Those in a folder of `save_to_disk` are of the dataset that was prepared, not of the rows that
    were chosen since and saved: they say nothing of the files beside them.
    """

    def __init__(self, document: object, *, folder: str) -> None:
        """Read a parsed dataset_info.json.

        Raises:
            DatasetError: a field is of the wrong kind.
        """
        info = fields.mapping(document, "the metadata")
        self._folder = folder
        self._counts: dict[str, int] = {}
        name = info.get("dataset_name") or info.get("builder_name")
        splits = info.get("splits")
        if not isinstance(name, str) or not isinstance(splits, Mapping):
            return
        prefix = _ONE_CAPITAL.sub(r"\1_\2", _TWO_CAPITALS.sub(r"\1_\2", name)).lower()
        for split, described in splits.items():
            self._add(f"{prefix}-{split}", fields.mapping(described, f"split {quoted(split)}"))

    def _add(self, prefix: str, split: Mapping[str, object]) -> None:
        total = fields.count(split.get("num_examples", 0), "num_examples")
        lengths = split.get("shard_lengths")
        if lengths is None:
            names, counts = [prefix], [total]
        else:
            counts = [fields.count(n, "a shard length") for n in fields.items(lengths, "lengths")]
            names = [f"{prefix}-{i:05d}-of-{len(counts):05d}" for i in range(len(counts))]
        for name, count in zip(names, counts, strict=True):
            for ending in _HUGGING_FACE_ENDINGS:
                self._counts[f"{name}.{ending}"] = count

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        count = self._counts.get(path[len(self._folder) :])
        if count is None:
            return None
        return ExpectedCount(num_examples=count, said_by=DATASET_INFO_FILENAME)

    def absent(self, listed: Set[str]) -> list[str]:
        """Return nothing: gaps show in the names, and a split that is not here is none."""
        return []
