"""MosaicML's index.json: shards with their samples, sizes and hashes, packed and unpacked.

Source: mosaicml-streaming 0.13, streaming/base/format/base/writer.py and reader.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.readers.records.sidecars.expected import ExpectedCount

_VERSION = 2


class ShardIndex:
    """What an index says of the shards beside it, each of which may be there packed or not."""

    def __init__(self, document: object, *, folder: str, said_by: str) -> None:
        """Read a parsed index.

        Raises:
            DatasetError: it is none, or a field is missing or of the wrong kind.
        """
        index = fields.mapping(document, "an index of shards")
        self._folder = folder
        self._found: dict[str, ExpectedCount] = {}
        self._shards: list[tuple[str, ...]] = []
        for files in _shards(index, said_by):
            self._shards.append(tuple(files))
            self._found |= files

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        if not path.startswith(self._folder):
            return None
        return self._found.get(path[len(self._folder) :])

    def absent(self, listed: Set[str]) -> list[str]:
        """Return the first name of each shard of which no file is there, see `Sidecar.absent`."""
        if not any(self._folder + name in listed for name in self._found):
            return []  # other files were asked for
        return [
            self._folder + names[0]
            for names in self._shards
            if not any(self._folder + name in listed for name in names)
        ]


def _shards(index: Mapping[str, object], said_by: str) -> Iterator[dict[str, ExpectedCount]]:
    """Yield what is said of the files of each shard, by their names."""
    version = index.get("version")
    if version != _VERSION:
        raise DatasetError(f"an index of shards of version {fields.shown(version)}, not {_VERSION}")
    for item in fields.items(index.get("shards"), "shards"):
        shard = fields.mapping(item, "a shard")
        samples = fields.count(shard.get("samples"), "samples")
        found: dict[str, ExpectedCount] = {}
        for key in ("zip_data", "raw_data"):
            if shard.get(key) is None:
                continue
            file = fields.mapping(shard[key], key)
            packed = shard.get("compression") if key == "zip_data" else None
            found[fields.text(file.get("basename"), "basename")] = ExpectedCount(
                num_examples=samples,
                num_bytes=fields.count(file.get("bytes"), "bytes"),
                said_by=said_by,
                compression=None if packed is None else fields.text(packed, "compression"),
                hashes=tuple(_hashes(file.get("hashes") or {})),
            )
        if not found:
            raise DatasetError("a shard has neither raw_data nor zip_data")
        yield found


def _hashes(value: object) -> Iterator[tuple[str, str]]:
    for name, stated in sorted(fields.mapping(value, "hashes").items()):
        yield name, fields.text(stated, "a hash").lower()
