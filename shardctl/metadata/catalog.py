"""The built-in catalog: layouts of well-known datasets, as their publishers state them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from shardctl.base.text import choices, quoted
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.metadata.dataset_name import newest_version
from shardctl.metadata.layout_document import dataset_from_layout

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
    layout = {**entry, "name": name}
    layout.pop("source", None)
    return replace(dataset_from_layout(layout, stem=name, folder=FOLDER), origin=_ORIGIN)
