"""What real loaders handed out, a file for each version: read, and recorded anew.

    python -m tests.loaders.recorded torch stateful accelerate hf

writes the files of the versions that are installed, with the settings of the files that are there.
Those of Hugging Face are of real Parquet files and generators, as the library itself read them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, library_of
from shardctl.loaders.loader_sequence import LoaderConfig

FOLDER = Path(__file__).parent
FILES = {
    f"{path.parent.name}_{path.stem.removeprefix('recorded_')}": path
    for path in sorted(FOLDER.glob("*/recorded_*.json"))
}
_HF = ("seed", "buffer", "host_by", "workers", "batch", "input_shards")

Batches = list[list[int]] | None  # None where the library refuses the settings


def read(file: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILES[file].read_text(encoding="utf-8"))
    return found


def loader_of(file: str) -> str:
    folder = FILES[file].parent.name
    return {"grain": "grain", "hugging_face": "hf"}.get(folder) or file.split("_")[1]


def versions_of(file: str) -> dict[str, str]:
    """Return the libraries that handed out what is in a file."""
    found = read(file)
    if "version" in found:
        return {"grain": found["version"]}
    versions: dict[str, str] = found.get("versions") or found["recorded_with"]
    return versions


def cases_of(file: str) -> Iterator[tuple[LoaderConfig, Batches]]:
    """Yield what a loader was given, and what it handed out, batch by batch."""
    found, loader = read(file), loader_of(file)
    version = versions_of(file)[LOADERS[loader].library]
    for case in found.get("orders") or found["cases"]:
        given = case.get("settings") or case.get("asked") or case
        yield config_of(loader, given, version), case.get("batches")


def config_of(loader: str, given: dict[str, Any], version: str = "") -> LoaderConfig:
    """Return the configuration of recorded settings."""
    settings = dict(given)
    if "host" in settings and not isinstance(settings["host"], int):
        settings["host"], settings["num_hosts"] = settings["host"]
        settings["shares"] = True
    if loader == "hf":
        settings = {k: settings[k] for k in ("host", "num_hosts", "shares", *_HF) if k in settings}
        settings["first_epoch"] = given.get("epoch", 0)
        settings["drop_remainder"] = given.get("drop", False)
        settings["streaming"] = given["source"] != "map"
        settings["arrow"] = given["source"] in ("parquet", "to_iterable_dataset")
        lengths = given["lengths"]
    else:
        lengths = [settings.pop("num_examples" if loader == "grain" else "n")]
    return LoaderConfig(lengths=np.array(lengths, np.int64), version=version, **settings)


def handed_out(loader: str, config: LoaderConfig) -> Batches:
    """Return what the real loader hands out; in one piece where there are no batches of Grain."""
    try:
        batches = library_of(LOADERS[loader]).batches(config)
        found: list[list[int]] = [batch.tolist() for batch in batches]
    except UsageError:
        return None
    return [list(chain(*found))] if loader == "grain" and config.batch is None else found


def record(loader: str) -> None:
    """Write the file of the installed version of a loader, with the settings of the newest."""
    newest = max(file for file in FILES if loader_of(file) == loader)
    found, library = read(newest), LOADERS[loader].library
    for case in found.get("orders") or found["cases"]:
        given = case.get("settings") or case["asked"]
        case["batches"] = handed_out(loader, config_of(loader, given, metadata.version(library)))
    if "version" in found:
        found["version"] = metadata.version(library)
    else:
        versions = found.setdefault("versions", found.pop("recorded_with", {}))
        found["versions"] = {name: metadata.version(name) for name in versions if name != "python"}
    name = f"recorded_{loader}_{metadata.version(library)}.json"
    lines = json.dumps(found, separators=(",", ":")).replace("},{", "},\n{")
    FILES[newest].with_name(name).write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        record(each)
