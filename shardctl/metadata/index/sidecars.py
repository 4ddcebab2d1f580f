"""What files beside record files state about them, and where it is not so.

MosaicML's index.json (mosaicml-streaming 0.13, streaming/base/format/base/writer.py and reader.py)
and the dataset_info.json of TFDS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from shardctl.base.text import counted, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files import fields
from shardctl.files.parse import parse_json
from shardctl.metadata.tfds_metadata import dataset_from_info, is_hugging_face_info
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of

_MOST_BYTES = 1 << 30
_MOST_NAMES, _MOST_PROBLEMS = 3, 20
_VERSION = 2  # of an index of shards


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedCount:
    """How many examples and bytes a file has, as `said_by`, a file beside it, states."""

    num_examples: int
    said_by: str
    num_bytes: int | None = None


# What is stated of a shard, by the names of the files that it may be in.
_Shard = Mapping[str, ExpectedCount]


class Sidecars:
    """What is stated of record files by other files beside them.

    problems: sidecars that cannot be read, a line each; nothing is compared with them.
    num_agreed: files that were compared and are as is stated; said_by: the names of the sidecars
        that state it, a few of them where there are many.
    """

    def __init__(self, sidecars: Iterable[StoredFile]) -> None:
        self.problems: list[str] = []
        self.num_agreed = 0
        self.said_by: set[str] = set()
        self.expected: dict[str, list[ExpectedCount]] = {}
        self._indices: list[list[list[str]]] = []  # of each the paths that each shard may have
        for file in sidecars:
            name = re.split(r"[/\\]", file.path)[-1]
            if name in _READERS:
                self._read(file, file.path[: len(file.path) - len(name)], name)

    def _read(self, file: StoredFile, folder: str, name: str) -> None:
        try:
            with fields.said_about(quoted(file.path, 200)):
                data = store_of(file.path).read(file.path, max_num_bytes=_MOST_BYTES)
                document = parse_json(data, source=quoted(file.path, 200))
                shards = list(_READERS[name](document, folder))
        except DatasetError as error:
            if len(self.problems) < _MOST_PROBLEMS:
                self.problems.append(str(error))
            elif len(self.problems) == _MOST_PROBLEMS:
                self.problems.append("more files beside the record files cannot be read")
            return
        for shard in shards:
            for basename, expected in shard.items():
                self.expected.setdefault(folder + basename, []).append(expected)
        if name != DATASET_INFO_FILENAME:  # where gaps show in the names
            self._indices.append([[folder + basename for basename in shard] for shard in shards])

    def __bool__(self) -> bool:
        """Return whether there is anything to compare with."""
        return bool(self.expected)

    def disagreement(self, file: StoredFile, num_examples: int) -> str | None:
        """Return in which way a file is not as its sidecars state, None where it is so."""
        stated = self.expected.get(file.path, [])
        for expected in stated:
            by = expected.said_by
            if len(self.said_by) < _MOST_NAMES:
                self.said_by.add(by)
            if num_examples != expected.num_examples:
                held = counted(num_examples, "example")
                return f"holds {held}, and {by} says {expected.num_examples}"
            if expected.num_bytes not in (None, file.num_bytes):
                return f"has {file.num_bytes} bytes, and {by} says {expected.num_bytes}"
        self.num_agreed += bool(stated)
        return None

    def absent(self, listed: Iterable[str]) -> list[str]:
        """Return the first path of each shard of an index of which no file is listed.

        Of an index of which none is, other files were asked for.
        """
        paths = {*listed} if self._indices else set()
        return [
            shard[0]
            for shards in self._indices
            if any(not paths.isdisjoint(shard) for shard in shards)
            for shard in shards
            if paths.isdisjoint(shard)
        ]


def _of_index(document: object, folder: str) -> Iterator[_Shard]:
    """Yield what MosaicML's index states of shards, each of which may be there packed or not."""
    if not isinstance(document, Mapping) or "shards" not in document:
        return  # an index of something else
    if document.get("version") != _VERSION:
        version = fields.shown(document.get("version"))
        raise DatasetError(f"an index of shards of version {version}, not {_VERSION}")
    for item in fields.items(document.get("shards"), "shards"):
        shard = fields.mapping(item, "a shard")
        found = {}
        for key in ("zip_data", "raw_data"):
            if shard.get(key) is not None:
                data = fields.mapping(shard[key], key)
                found[fields.text(data.get("basename"), "basename")] = ExpectedCount(
                    num_examples=fields.count(shard.get("samples"), "samples"),
                    num_bytes=fields.count(data.get("bytes"), "bytes"),
                    said_by="index.json",
                )
        if not found:
            raise DatasetError("a shard has neither raw_data nor zip_data")
        yield found


def _of_dataset_info(document: object, folder: str) -> Iterator[_Shard]:
    """Yield what the metadata of TFDS states; those of Hugging Face may be of other rows."""
    if is_hugging_face_info(document):
        return
    for split in dataset_from_info(document, data_dir=folder).splits:
        for shard, length in enumerate(split.shard_lengths):
            name = split.location(shard)[1]
            yield {name: ExpectedCount(num_examples=length, said_by=DATASET_INFO_FILENAME)}


_READERS: dict[str, Callable[[object, str], Iterator[_Shard]]] = {
    "index.json": _of_index,
    DATASET_INFO_FILENAME: _of_dataset_info,
}
