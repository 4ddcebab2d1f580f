"""The built-in catalog: layouts of well-known datasets, as their publishers state them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import choices, quoted
from shardctl.core.tfds_rules import DEFAULT_FILE_FORMAT, DEFAULT_TEMPLATE
from shardctl.errors import DatasetError
from shardctl.readers.dataset_name import newest_version

_ORIGIN = "built-in catalog"
FOLDER = Path(__file__).with_name("catalog")  # importlib.resources would take 4 ms to import


def catalog_names() -> tuple[str, ...]:
    """Return the names of the datasets in the catalog, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def catalog_dataset(
    name: str, config: str | None = None, version: str | None = None, *, said: str = ""
) -> Dataset | None:
    """Return a dataset of the catalog, None where it has no such config or version.

    Without a version the newest is meant; `version` may have wildcards. Without a config it is
    TFDS's default config, or the only one. `said` is the name as errors repeat it.

    Raises:
        DatasetError: the dataset has several configs here, and the default one is not among them.
    """
    document = _document(name)
    entries = document["entries"]
    if config is None:
        configs = list(dict.fromkeys(entry["config"] for entry in entries))
        config = document.get("default_config")
        if config not in configs and len(configs) > 1:
            listed = choices(f"{name}/{config}" for config in configs)
            raise DatasetError(
                f"{quoted(said or name)} has configs in the catalog; choose one: {listed}"
            )
        if config not in configs and configs:
            config = configs[0]
    entries = [entry for entry in entries if entry["config"] == config]
    found = newest_version([entry["version"] for entry in entries], version)
    return next((_dataset(name, entry) for entry in entries if entry["version"] == found), None)


def catalog_datasets(name: str) -> tuple[Dataset, ...]:
    """Return the datasets of every entry under a name."""
    return tuple(_dataset(name, entry) for entry in _document(name)["entries"])


def catalog_titles(name: str) -> tuple[str, ...]:
    """Return name, config and version of every entry under a name."""
    return tuple(
        f"{name}/{entry['config']}:{entry['version']}"
        if entry.get("config")
        else f"{name}:{entry['version']}"
        for entry in _document(name)["entries"]
    )


def _document(name: str) -> dict[str, Any]:
    if name not in catalog_names():
        return {"entries": []}
    text = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def _dataset(name: str, entry: Mapping[str, Any]) -> Dataset:
    file_format = entry.get("file_format", DEFAULT_FILE_FORMAT)
    return Dataset(
        name=name,
        config=entry.get("config"),
        version=entry["version"],
        file_format=file_format,
        splits=tuple(_split(name, file_format, split) for split in entry["splits"]),
        origin=_ORIGIN,
    )


def _split(dataset: str, file_format: str, split: Mapping[str, Any]) -> Split:
    lengths = split.get("shard_lengths")
    num_shards = split["num_shards"] if lengths is None else len(lengths)
    files = ShardFiles.from_template(
        split.get("filepath_template") or DEFAULT_TEMPLATE,
        dataset=dataset,
        split=split["name"],
        file_format=file_format,
        num_shards=num_shards,
    )
    if lengths is not None:
        return Split(
            name=split["name"],
            shard_lengths=tuple(lengths),
            files=(files,),
            num_bytes=split.get("num_bytes"),
        )
    return Split.even(
        name=split["name"],
        num_examples=split["num_examples"],
        num_shards=num_shards,
        files=(files,),
        num_bytes=split.get("num_bytes"),
    )
