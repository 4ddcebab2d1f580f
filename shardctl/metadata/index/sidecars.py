"""What files such as index.json state about the record files beside them, compared with these.

MosaicML's index.json (mosaicml-streaming 0.13, streaming/base/format/base/writer.py and reader.py)
and the dataset_info.json of TFDS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from shardctl.base.text import counted, quoted
from shardctl.base.tfds_rules import DATASET_INFO_FILENAME
from shardctl.dataset.dataset import STATED_BY_INDEX, Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, NotThereError
from shardctl.files import fields
from shardctl.files.parse import parse_json
from shardctl.metadata.index.name_words import split_word
from shardctl.metadata.tfds_metadata import dataset_from_info, is_hugging_face_info
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of

_MOST_BYTES, _MOST_PROBLEMS = 1 << 30, 20
_VERSION = 2  # of an index of shards


class Expected(NamedTuple):
    """How many examples and bytes a file has, as a file beside it of a name states."""

    num_examples: int
    num_bytes: int | None
    said_by: str


# What is stated of a shard, by the names of the files that it may be in.
_Shard = Mapping[str, Expected]


class Sidecars:
    """What is stated of record files by other files beside them.

    problems: some of the sidecars that cannot be read, a line each; nothing is compared with them.
    """

    def __init__(self, sidecars: Iterable[StoredFile]) -> None:
        self.problems: list[str] = []
        self.expected: dict[str, list[Expected]] = {}
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
            self.problems += [str(error)][: _MOST_PROBLEMS - len(self.problems)]
            return
        for shard in shards:
            for basename, expected in shard.items():
                self.expected.setdefault(folder + basename, []).append(expected)
        if name != DATASET_INFO_FILENAME:  # where gaps show in the names
            self._indices.append([[folder + basename for basename in shard] for shard in shards])

    def disagreement(self, file: StoredFile, num_examples: int) -> str | None:
        """Return in which way a file is not as its sidecars state, None where it is so."""
        for expected, num_bytes, by in self.expected.get(file.path, []):
            if num_examples != expected:
                return f"holds {counted(num_examples, 'example')}, and {by} says {expected}"
            if num_bytes not in (None, file.num_bytes):
                return f"has {file.num_bytes} bytes, and {by} says {num_bytes}"
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
                found[fields.text(data.get("basename"), "basename")] = Expected(
                    fields.count(shard.get("samples"), "samples"),
                    fields.count(data.get("bytes"), "bytes"),
                    "index.json",
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
            yield {name: Expected(length, None, DATASET_INFO_FILENAME)}


def dataset_of_index(folder: str) -> Dataset | None:
    """Return the dataset that index.json states, of a folder or of its subfolders; None of none.

    MosaicML's and litdata's (litdata 0.2.76, streaming/writer.py) say of each shard how long it is,
    so no shard has to be there.
    """
    store, splits, file_format = store_of(folder), [], ""
    for name in ("", *store.subfolders(folder)):
        path = "/".join(filter(None, (folder.rstrip("/"), name, "index.json")))
        try:
            data = store.read(path, max_num_bytes=_MOST_BYTES)
        except NotThereError:
            continue
        with fields.said_about(quoted(path, 200)):
            document = parse_json(data, source=quoted(path, 200))
            is_mds = isinstance(document, Mapping) and "shards" in document
            form, of = ("mds", _of_index) if is_mds else ("litdata", _of_chunks)
            shards = [next(iter(shard.items())) for shard in of(document, folder)]
            word = name or folder.rstrip("/").rpartition("/")[2]
            files = ShardFiles(
                data_dir=folder,
                num_shards=len(shards),
                names=tuple(f"{name}/{file}".lstrip("/") for file, _ in shards),
            )
            split = Split(
                name=split_word(word) or name or "train",
                shard_lengths=tuple(stated.num_examples for _, stated in shards),
                files=(files,),
                num_bytes=sum(stated.num_bytes or 0 for _, stated in shards),
            )
            splits += [split] * bool(shards)
            file_format = form
        if splits and not name:
            break
    if not splits:
        return None
    name = folder.rstrip("/").rpartition("/")[2]
    return Dataset(
        name=name,
        splits=tuple(splits),
        file_format=file_format,
        data_dir=folder,
        reference=folder,
        origin=STATED_BY_INDEX,
    )


def _of_chunks(document: object, folder: str) -> Iterator[_Shard]:
    """Yield what litdata's index states of chunks."""
    if not isinstance(document, Mapping) or "chunks" not in document:
        return
    for item in fields.items(document.get("chunks"), "chunks"):
        chunk = fields.mapping(item, "a chunk")
        if chunk.get("dim") is not None:
            raise DatasetError("chunks of tokens: their number of items depends on TokensLoader")
        size, num_bytes = (fields.count(chunk.get(of), of) for of in ("chunk_size", "chunk_bytes"))
        name = fields.text(chunk.get("filename"), "filename")
        yield {name: Expected(size, num_bytes, "index.json")}


_READERS: dict[str, Callable[[object, str], Iterator[_Shard]]] = {
    "index.json": _of_index,
    DATASET_INFO_FILENAME: _of_dataset_info,
}
